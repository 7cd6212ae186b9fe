// SPDX-License-Identifier: Apache-2.0
//
// ingot_engine_check: the engine on a real GPU. It links nothing but the C library, so that the file alone
// can be carried to a machine with a GPU; NVRTC is found there as the engine finds it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/check.h"

namespace {

constexpr const char* usage =
    "ingot_engine_check [PART...] [--rotations N] [--ordinal N] --cache FOLDER\n"
    "Parts (none: all but --small and --fault):\n"
    "  --sweep       every kind of MLP against float64; --rotations N: with N sizes and layouts each (1)\n"
    "  --whole       the same of the kernels of a whole MLP, each with each of its tiles\n"
    "  --small       both, a few of each, for compute-sanitizer\n"
    "  --capture     stream capture and replay\n"
    "  --streams     two streams at once\n"
    "  --large       more than 2^31 elements (20 GB)\n"
    "  --errors      wrong pointers\n"
    "  --launch      processor time of run()\n"
    "  --first-use   compiling, and loading from the cache; needs a cache without these kernels\n"
    "  --fault       a kernel that fails; last, since the device is lost to the process\n"
    "Exits with 1 when a check failed, 3 when the device did.\n";

}  // namespace

int main(int count, char** arguments) {
  using namespace ingot;
  std::vector<std::string> parts;
  check::SweepOptions options;
  base::Environment environment = base::read_environment();
  int ordinal = 0;
  std::string cache;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto value = [&] { return i + 1 < count ? arguments[++i] : ""; };
    if (argument == "--rotations")
      options.rotations = std::atoi(value());
    else if (argument == "--ordinal")
      ordinal = std::atoi(value());
    else if (argument == "--cache")
      cache = value();
    else if (argument.starts_with("--") && std::strstr(usage, ("  " + argument + " ").c_str()) != nullptr)
      parts.push_back(argument);
    else
      return std::fputs(usage, stderr), 2;
  }
  if (cache.empty()) return std::fputs(usage, stderr), 2;
  environment.ingot_cache = cache + "/check";
  if (parts.empty())
    parts = {"--errors",  "--sweep", "--whole",  "--capture",
             "--streams", "--large", "--launch", "--first-use"};

  check::Session session(environment, ordinal);
  const DeviceDescription& device = session.gpu()->description;
  std::printf("%s, compute capability %d.%d, %d multiprocessors, planned with %.0f TFLOP/s, %.0f GB/s\n",
              device.name.c_str(), device.gpu.major, device.gpu.minor, device.gpu.multiprocessors,
              device.gpu.tensor_flops_per_s * 1e-12, device.gpu.memory_bytes_per_s * 1e-9);
  for (const std::string& part : parts) {
    if (part == "--sweep") check::sweep(session, options);
    if (part == "--whole") check::whole(session, options);
    if (part == "--small") {
      check::sweep(session, {.rotations = 1, .small = true});
      check::whole(session, {.rotations = 1, .small = true});
    }
    if (part == "--capture") check::capture(session);
    if (part == "--streams") check::streams(session);
    if (part == "--large") check::large(session);
    if (part == "--errors") check::errors(session);
    if (part == "--launch") check::launch_overhead(session);
    if (part == "--first-use") check::first_use(session, cache + "/first");
    if (part == "--fault") check::fault(session);
  }
  std::printf("checked %d, failed %d\n", session.checked(), session.failed());
  std::fflush(stdout);
  return session.failed() == 0 ? 0 : 1;
}
