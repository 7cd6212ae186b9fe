// SPDX-License-Identifier: Apache-2.0
#include "gpu/gemm_choice.h"

#include <algorithm>
#include <limits>

#include "gpu/timer.h"

namespace ingot::gpu {

namespace {

constexpr int proposals = 8, rounds = 5;

}  // namespace

Result<BlasAlgorithm> GemmChoices::choose(const Gemm& gemm, const GemmOperands& operands, CuStream stream) {
  const std::lock_guard lock(mutex_);
  if (const auto found = chosen_.find(gemm.shape()); found != chosen_.end()) return found->second;
  auto measured = measure(gemm, operands, stream);
  if (measured) chosen_.emplace(gemm.shape(), *measured);
  return measured;
}

Result<BlasAlgorithm> GemmChoices::measure(const Gemm& gemm, const GemmOperands& operands,
                                           CuStream stream) const {
  auto algorithms = gemm.algorithms(proposals);
  if (!algorithms) return algorithms.error();
  if (algorithms->size() == 1) return algorithms->front();
  const Driver& driver = device_->driver();
  const auto timer = EventTimer::make(device_);
  if (!timer) return timer.error();
  // Written between two measurements: what the product reads comes from memory, as it does in a model whose
  // other layers have passed through the cache.
  const std::size_t cache = std::max<std::size_t>(device_->description().gpu.l2_bytes, std::size_t{1} << 20U);
  const auto other = DeviceMemory::zeros(device_, 2 * cache);
  if (!other) return other.error();

  std::vector<double> least(algorithms->size(), std::numeric_limits<double>::infinity());
  std::optional<Error> refused;
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < algorithms->size(); ++i) {
      if (round > 0 && least[i] == std::numeric_limits<double>::infinity()) continue;  // it was refused
      const auto address = reinterpret_cast<CuAddress>(other->data());
      if (const CuResult r =
              driver.cuMemsetD8Async(address, static_cast<unsigned char>(round), 2 * cache, stream);
          r != 0) {
        return driver_error(driver, r, "cuMemsetD8Async");
      }
      std::optional<Error> wrong;
      const auto took = timer->seconds(stream, [&]() -> Result<void> {
        auto ran = gemm.run((*algorithms)[i], operands, stream);
        if (!ran) wrong = ran.error();
        return ran;
      });
      if (wrong) {
        refused = wrong;
        least[i] = std::numeric_limits<double>::infinity();
        continue;
      }
      if (!took) return took.error();
      // The first round loads code.
      least[i] = round == 0 ? std::numeric_limits<double>::max() : std::min(least[i], *took);
    }
  }
  const auto best = std::min_element(least.begin(), least.end());
  if (*best == std::numeric_limits<double>::infinity()) return *refused;
  return (*algorithms)[static_cast<std::size_t>(best - least.begin())];
}

Result<std::shared_ptr<GemmChoices>> LibrarySource::get(const std::shared_ptr<const Device>& device) {
  const std::lock_guard lock(mutex_);
  if (opened_ != nullptr) return opened_;
  auto blas = Blas::open(environment_);
  if (!blas) return blas.error();
  opened_ = std::make_shared<GemmChoices>(device, std::move(blas).value());
  return opened_;
}

}  // namespace ingot::gpu
