// SPDX-License-Identifier: Apache-2.0
//
// Capture and replay, two streams at once, more than 2^31 elements, wrong pointers, a kernel that faults.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/check.h"

namespace ingot::check {

namespace {

/// A problem with its executor, and x, y and workspace for one number of tokens.
struct Subject {
  Subject(const Session& session, const Mlp& mlp, std::int64_t count, std::uint64_t seed)
      : tokens(count),
        problem(session, mlp, Place::gate_then_up, count, seed),
        executor(take(gpu::prepare(session.gpu(), mlp, problem.on_device(), {}))),
        x(session, static_cast<std::size_t>(count) * problem.row_bytes()),
        y(session, x.bytes()),
        workspace(session, executor->workspace_bytes(count)) {
    x.upload(problem.x(), x.bytes());
    y.fill(0xff);
  }
  RunArguments arguments(ingot::Stream stream) const {
    return {.tokens = tokens,
            .x = x.at(0),
            .y = y.at(0),
            .workspace = workspace.at(0),
            .workspace_bytes = workspace.bytes(),
            .stream = stream};
  }
  std::vector<char> result() const {
    std::vector<char> out(y.bytes());
    y.download(out.data(), out.size());
    return out;
  }

  std::int64_t tokens;
  Problem problem;
  std::shared_ptr<const Executor> executor;
  Buffer x, y, workspace;
};

Mlp mlp_of(std::int64_t dim, std::int64_t hidden, bool gated, DType dtype = DType::bf16) {
  return {dim, hidden, Activation::gelu_tanh, gated, true, dtype};
}

}  // namespace

void capture(Session& session) {
  const gpu::Driver& d = session.driver();
  const Subject s(session, mlp_of(768, 3072, true), 1000, 1);
  const Stream stream(session);
  constexpr int global = 0;
  gpu::CuGraph graph = nullptr;
  // Nothing is compiled yet: refused, and the capture stays whole.
  must(d, d.cuStreamBeginCapture_v2(stream.get(), global), "cuStreamBeginCapture");
  const auto refused = s.executor->run(s.arguments(stream.handle()));
  session.report(
      !refused && refused.error().code == ErrorCode::unsupported,
      fmt::format("capture: not before it is compiled: {}", refused ? "ran" : refused.error().message), true);
  // Compiling for other work beside a capture does not break it.
  const auto warmed = s.executor->warm(1000);
  session.report(warmed.ok(), "capture: warm beside it", true);
  const auto captured = s.executor->run(s.arguments(stream.handle()));
  const auto again = s.executor->run(s.arguments(stream.handle()));
  const gpu::CuResult ended = d.cuStreamEndCapture(stream.get(), &graph);
  session.report(captured.ok() && again.ok() && ended == 0 && graph != nullptr,
                 fmt::format("capture: two runs captured{}", captured ? "" : ": " + captured.error().message),
                 true);
  if (ended != 0 || graph == nullptr) return;
  gpu::CuGraphExec executable = nullptr;
  must(d, d.cuGraphInstantiateWithFlags(&executable, graph, 0), "cuGraphInstantiate");
  take(s.executor->run(s.arguments(stream.handle())));
  stream.wait();
  const std::vector<char> direct = s.result();
  bool same = true;
  for (int replay = 0; replay < 3; ++replay) {
    s.y.fill(0xff);
    s.workspace.fill(0xff);
    must(d, d.cuGraphLaunch(executable, stream.get()), "cuGraphLaunch");
    stream.wait();
    same = same && s.result() == direct;
  }
  session.report(same, "capture: replays give the bits of a run", true);
  must(d, d.cuGraphExecDestroy(executable), "cuGraphExecDestroy");
  must(d, d.cuGraphDestroy(graph), "cuGraphDestroy");
}

void streams(Session& session) {
  const Subject one(session, mlp_of(768, 3072, false), 2000, 2),
      two(session, mlp_of(320, 1280, true), 777, 3);
  const std::array<const Subject*, 2> subjects{&one, &two};
  std::array<std::vector<char>, 2> alone;
  const Stream first(session), second(session);
  for (std::size_t i = 0; i < 2; ++i) {
    take(subjects[i]->executor->run(subjects[i]->arguments(first.handle())));
    first.wait();
    alone[i] = subjects[i]->result();
    subjects[i]->y.fill(0xff);
    subjects[i]->workspace.fill(0xff);
  }
  bool same = true;
  for (int round = 0; round < 20; ++round) {
    for (int run = 0; run < 10; ++run) {
      take(one.executor->run(one.arguments(first.handle())));
      take(two.executor->run(two.arguments(second.handle())));
    }
    first.wait();
    second.wait();
    for (std::size_t i = 0; i < 2; ++i) same = same && subjects[i]->result() == alone[i];
  }
  session.report(same, "streams: two at once give the bits of one", true);
}

void large(Session& session) {
  struct Large {
    Mlp mlp;
    bool aligned;
    const char* what;
  };
  const std::int64_t tokens = (std::int64_t{1} << 21) + 77;
  const std::array<Large, 4> all{{{mlp_of(64, 1024, false), true, "hidden"},
                                  {mlp_of(1024, 64, false), true, "x and y"},
                                  {mlp_of(64, 1024, true), false, "hidden, odd strides"},
                                  {mlp_of(64, 1024, false, DType::f32), true, "hidden, f32"}}};
  for (const Large& large : all) {
    constexpr std::int64_t block = 4096;  // rows of x that repeat
    const Problem problem(session, large.mlp, Place::gate_then_up, block, 4);
    const std::int64_t stride = large.mlp.dim + (large.aligned ? 0 : 1);
    const std::size_t pitch = static_cast<std::size_t>(stride) * size_of(large.mlp.dtype);
    const std::vector<char> rows = problem.strided_x(block, stride);
    const Buffer x(session, static_cast<std::size_t>(tokens) * pitch), y(session, x.bytes());
    for (std::size_t at = 0; at < x.bytes(); at += rows.size())
      x.upload(rows.data(), std::min(rows.size(), x.bytes() - at), at);
    const auto executor = take(gpu::prepare(session.gpu(), large.mlp, problem.on_device(), {}));
    const Buffer workspace(session, executor->workspace_bytes(tokens));
    y.fill(0xff);
    workspace.fill(0xff);
    take(executor->run({.tokens = tokens,
                        .x = x.at(0),
                        .x_row_stride = stride,
                        .y = y.at(0),
                        .y_row_stride = stride,
                        .workspace = workspace.at(0),
                        .workspace_bytes = workspace.bytes(),
                        .stream = {}}));
    session.synchronize();
    const std::vector<std::int64_t> judged = cpu::spread_rows(tokens, 64);
    std::vector<std::int64_t> of_block;
    std::vector<char> gathered(judged.size() * problem.row_bytes());
    for (std::size_t i = 0; i < judged.size(); ++i) {
      y.download(gathered.data() + i * problem.row_bytes(), problem.row_bytes(),
                 static_cast<std::size_t>(judged[i]) * pitch);
      of_block.push_back(judged[i] % block);
    }
    const std::string wrong = problem.judge(of_block, gathered.data());
    session.report(wrong.empty(),
                   fmt::format("large: {} tokens of {}, {} past 2^31 elements {}", tokens,
                               to_string(large.mlp), large.what, wrong),
                   true);
  }
}

void errors(Session& session) {
  const Subject s(session, mlp_of(64, 128, false), 10, 5);
  alignas(64) static std::array<char, 64 * 1024> host{};
  const auto refuses = [&](const std::string& name, RunArguments run) {
    const auto done = s.executor->run(run);
    session.report(
        !done && done.error().code == ErrorCode::invalid_argument && done.error().message.starts_with(name),
        fmt::format("errors: {}", done ? name + " was taken" : done.error().message), true);
  };
  RunArguments run = s.arguments({});
  run.x = host.data();
  refuses("x: host memory", run);
  run = s.arguments({});
  run.y = host.data();
  refuses("y: host memory", run);
  run = s.arguments({});
  run.workspace = host.data();
  run.workspace_bytes = host.size();
  refuses("workspace: host memory", run);
  Weights weights = s.problem.on_device();
  weights.down.weight = host.data();
  const auto prepared = gpu::prepare(session.gpu(), s.problem.mlp(), weights, {});
  session.report(!prepared && prepared.error().message.starts_with("down weight: host memory"),
                 fmt::format("errors: {}", prepared ? "host weights were taken" : prepared.error().message),
                 true);
  take(s.executor->run(s.arguments({})));
  session.synchronize();
  const std::vector<char> y = s.result();
  std::vector<char> ends(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(s.problem.row_bytes()));
  ends.insert(ends.end(), y.end() - static_cast<std::ptrdiff_t>(s.problem.row_bytes()), y.end());
  const std::string wrong = s.problem.judge({0, 9}, ends.data());
  session.report(wrong.empty(), "errors: the device is as good as before " + wrong, true);
}

void fault(Session& session) {
  const Subject s(session, mlp_of(64, 128, false), 10, 6);
  RunArguments run = s.arguments({});
  run.y = s.x.at(std::size_t{1} << 42);
  const auto unmapped = s.executor->run(run);
  session.report(
      !unmapped && unmapped.error().code == ErrorCode::invalid_argument,
      fmt::format("fault: {}", unmapped ? "an address of nobody was taken" : unmapped.error().message), true);
  // The second row of y lies 128 GiB behind the first, past everything that is mapped; y lies behind the
  // other tensors, so that this is no overlap.
  const Buffer all(session, 1 << 20);
  run = s.arguments({});
  run.tokens = 2;
  run.x = all.at(0);
  run.workspace = all.at(1 << 18);
  run.workspace_bytes = s.executor->workspace_bytes(2);
  run.y = all.at(1 << 19);
  run.y_row_stride = std::int64_t{1} << 36;
  take(s.executor->run(run));
  session.driver().cuCtxSynchronize();
  const auto after = s.executor->run(s.arguments({}));
  session.report(!after && after.error().code == ErrorCode::device,
                 fmt::format("fault: {}", after ? "the next run said nothing" : after.error().message), true);
}

}  // namespace ingot::check
