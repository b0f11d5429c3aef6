// SPDX-License-Identifier: Apache-2.0
// What is a buffer and what is not. That the refusals come with their messages is tested in test/compile_fail.
#include "support/catch.hpp"

#include <toroid/core/buffer.hpp>

#include <array>
#include <complex>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace toroid;
using toroid::detail::as_span;

namespace {

struct point {
  float x, y;
};
struct const_member {
  const int value;
};
struct point_view : std::ranges::view_base {
  const point* first;
};

static_assert(element<float> && element<bool> && element<float16> && element<std::byte> &&
              element<std::complex<double>>);
static_assert(element<point> && element<const_member> && element<std::array<float, 3>>);
static_assert(!element<float*> && !element<void (*)()> && !element<float point::*> && !element<std::nullptr_t>);
static_assert(!element<std::span<float>> && !element<std::span<float, 4>> && !element<std::string_view> &&
              !element<point_view>);
static_assert(!element<std::reference_wrapper<float>> && !element<std::reference_wrapper<const point>>);
static_assert(!element<std::array<float*, 2>> && !element<std::array<std::array<float*, 2>, 2>> &&
              !element<std::array<std::span<float>, 2>>);
static_assert(!element<std::string> && !element<std::vector<float>> && !element<std::unique_ptr<float>>);
static_assert(!element<float&> && !element<const float> && !element<float[3]> && !element<void>);

static_assert(buffer<std::vector<float>> && buffer<std::vector<float>&> && buffer<const std::vector<float>&>);
static_assert(buffer<std::span<const float>> && buffer<float (&)[4]> && buffer<std::array<point, 2>&> &&
              buffer<std::string&>);
static_assert(!buffer<std::vector<bool>&> && !buffer<std::list<float>&> && !buffer<std::deque<float>&>);
static_assert(!buffer<std::vector<float*>&> && !buffer<std::vector<std::string>&> && !buffer<float (&)[2][2]> &&
              !buffer<float>);
static_assert(any_range<std::vector<bool>&> && any_range<std::list<float>&> && !any_range<int>);

TEST_CASE("a span of what a buffer holds") {
  std::vector<float> v{1, 2, 3};
  const std::vector<float> fixed{1, 2};
  std::array<point, 2> points{};
  int raw[4] = {};
  static_assert(std::same_as<decltype(as_span(v)), std::span<float>>);
  static_assert(std::same_as<decltype(as_span(fixed)), std::span<const float>>);
  static_assert(std::same_as<decltype(as_span(points)), std::span<point>>);
  static_assert(std::same_as<decltype(as_span(raw)), std::span<int>>);
  static_assert(std::same_as<decltype(as_span(std::span(v))), std::span<float>>);
  static_assert(std::same_as<decltype(as_span(std::span<const float>(v))), std::span<const float>>);
  CHECK((as_span(v).data() == v.data() && as_span(v).size() == 3));
  CHECK((as_span(fixed).data() == fixed.data() && as_span(fixed).size() == 2));
  CHECK((as_span(points).data() == points.data() && as_span(points).size() == 2));
  CHECK((as_span(raw).data() == raw && as_span(raw).size() == 4));
  CHECK((as_span(std::span(v).subspan(1)).data() == v.data() + 1 && as_span(std::span(v).subspan(1)).size() == 2));
  CHECK(as_span(std::vector<float>()).empty());
}

TEST_CASE("what is a buffer, and what can be written to, passes the checks") {
  toroid::detail::check_buffer<std::vector<float>&>();
  toroid::detail::check_buffer<const std::vector<float>&>();
  toroid::detail::check_buffer<std::vector<float>>();  // an input may be a temporary
  toroid::detail::check_buffer<std::span<const point>>();
  toroid::detail::check_output<std::vector<float>&>();
  toroid::detail::check_output<std::span<float>>();
  toroid::detail::check_output<const std::span<float>&>();
  toroid::detail::check_output<float(&)[3]>();
  SUCCEED("they are compile-time checks");
}

}  // namespace
