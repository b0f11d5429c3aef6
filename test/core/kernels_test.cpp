// SPDX-License-Identifier: Apache-2.0
// The reduction loops: values that matter, types and operators without lanes, copies, and the ends of buffers. All
// operators on all kinds of number: kernels_float_test.cpp, kernels_integer_test.cpp.
#include "core/kernel_harness.hpp"

#include <algorithm>
#include <complex>

using namespace kernel_test;
using namespace toroid;
using toroid::detail::copy_for;
using toroid::detail::reduction_for;

namespace {

/// Repeated so often that every loop meets the value: the single elements, the registers and the blocks of them.
template <class T>
std::vector<std::vector<T>> repeated(const std::vector<T>& one_per_rank, std::size_t count = 300) {
  std::vector<std::vector<T>> ranks;
  for (const T x : one_per_rank) ranks.emplace_back(count, x);
  return ranks;
}

template <class T, class Op>
void check_all(const std::vector<T>& one_per_rank, T expected) {
  for (const instruction_set set : instruction_sets())
    for (const std::size_t count : {1u, 3u, 300u}) {
      const std::vector<T> result = reduced<T, Op>(set, repeated<T>(one_per_rank, count));
      bool right = result.size() == count;
      for (const T x : result) right = right && same<T>(x, expected);
      CHECK(right);
    }
}

template <class T>
void check_nan() {
  const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int ranks : {3, 4, 5}) {
    // Element j: rank j has NaN, the others 1, 2, 3 ...; then all NaN, NaN among infinities, and no NaN at all.
    const std::size_t columns = static_cast<std::size_t>(ranks) + 3;
    for (const std::size_t repeat : {1u, 40u}) {
      std::vector<std::vector<T>> values(static_cast<std::size_t>(ranks), std::vector<T>(columns * repeat));
      for (std::size_t r = 0; r < values.size(); ++r)
        for (std::size_t i = 0; i < values[r].size(); ++i) {
          const std::size_t j = i % columns;
          T x = static_cast<T>(static_cast<float>(r + 1));
          if (j == r || j == columns - 3) x = nan;
          if (j == columns - 2) x = r == 1 ? nan : static_cast<T>(r == 0 ? infinity : -infinity);
          values[r][i] = x;
        }
      for (const instruction_set set : instruction_sets()) {
        const auto low = reduced<T, minimum>(set, values), high = reduced<T, maximum>(set, values);
        for (std::size_t i = 0; i < low.size(); ++i) {
          const bool has_nan = i % columns != columns - 1;
          REQUIRE(std::isnan(static_cast<float>(low[i])) == has_nan);
          REQUIRE(std::isnan(static_cast<float>(high[i])) == has_nan);
          if (!has_nan) REQUIRE(static_cast<float>(low[i]) == 1.0f);
          if (!has_nan) REQUIRE(static_cast<float>(high[i]) == static_cast<float>(ranks));
        }
      }
    }
  }
}

template <class T>
void check_extremes_of_unsigned() {
  const T most = std::numeric_limits<T>::max();
  check_all<T, minimum>({0, most}, 0);
  check_all<T, maximum>({0, most}, most);
}

}  // namespace

TEST_CASE("NaN wins under minimum and maximum, wherever it stands") {
  check_nan<float>();
  check_nan<double>();
  check_nan<long double>();
  check_nan<float16>();
  check_nan<bfloat16>();
}

TEST_CASE("unsigned minimum, maximum of negative numbers, products and bits") {
  check_extremes_of_unsigned<std::uint8_t>();
  check_extremes_of_unsigned<std::uint16_t>();
  check_extremes_of_unsigned<std::uint32_t>();
  check_extremes_of_unsigned<std::uint64_t>();
  const float infinity = std::numeric_limits<float>::infinity();
  check_all<std::int8_t, maximum>({-5, -3}, -3);
  check_all<float, maximum>({-5, -7, -3}, -3);
  check_all<float, maximum>({-infinity, -infinity}, -infinity);
  check_all<float, minimum>({infinity, infinity}, infinity);
  check_all<double, maximum>({-5, -7, -3}, -3);
  check_all<float16, maximum>({float16(-5), float16(-7), float16(-3)}, float16(-3));
  check_all<int, product>({-2, 3, 5}, -30);
  check_all<float, product>({-2, 3, 5}, -30);
  check_all<std::uint8_t, bit_and>({0xF0, 0x3C}, 0x30);
  check_all<std::byte, bit_and>({std::byte{0xF0}, std::byte{0x3C}}, std::byte{0x30});
}

TEST_CASE("integers wrap around, and bool stays 0 or 1") {
  check_all<std::int8_t, sum>({120, 100}, -36);
  check_all<std::uint8_t, sum>({200, 100}, 44);
  check_all<int, sum>({std::numeric_limits<int>::max(), 1}, std::numeric_limits<int>::min());
  check_all<std::int64_t, sum>({std::numeric_limits<std::int64_t>::max(), 1}, std::numeric_limits<std::int64_t>::min());
  check_all<std::uint16_t, product>({0xffff, 0xffff}, 1);
  check_all<bool, sum>({true, true, true}, true);
  check_all<bool, sum>(std::vector<bool>(256, true), true);
  check_all<bool, product>({true, false, true}, false);
  check_all<bool, minimum>({true, false, true}, false);
  check_all<bool, maximum>({false, false, true}, true);
  for (const instruction_set set : instruction_sets()) {
    // The byte itself, not what a comparison of bools makes of it.
    std::array<std::byte, 100> a{}, b{}, result{};
    a.fill(std::byte{1});
    b.fill(std::byte{1});
    const std::array<const std::byte*, 2> from{a.data(), b.data()};
    std::byte* to = result.data();
    reduce_arguments arguments;
    arguments.sources = from.data();
    arguments.source_count = 2;
    arguments.destinations = &to;
    arguments.destination_count = 1;
    arguments.count = result.size();
    reduction_for<bool, sum>(set)(arguments);
    CHECK(result == a);
  }
}

TEST_CASE("averages of integers are cut off towards zero and exact before that") {
  check_all<int, average>({7, 8, 9}, 8);
  check_all<int, average>({1, 1, 2}, 1);
  check_all<int, average>({-1, -1, -2}, -1);
  const int most = std::numeric_limits<int>::max();
  check_all<int, average>({most, most, most}, most);
  check_all<std::uint8_t, average>({255, 255, 254}, 254);
  check_all<std::uint32_t, average>({0xffffffffu, 0xffffffffu}, 0xffffffffu);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  check_all<std::int64_t, average>({least, least, least + 2}, least + 1);
  check_all<std::uint64_t, average>({~std::uint64_t{0}, ~std::uint64_t{0}}, ~std::uint64_t{0});
  check_all<float, average>({1, 2, 3, 4}, 2.5f);
  check_all<float, sum>({1, 2, 3, 4}, 10);
  check_all<float, minimum>({1, 2, 3, 4}, 1);
  check_all<float, maximum>({1, 2, 3, 4}, 4);
  check_all<float, product>({1, 2, 3, 4}, 24);
}

TEST_CASE("averages of many integers, by more ranks than double is exact for") {
  for (const instruction_set set : instruction_sets()) {
    std::array<std::int32_t, 40> value{};
    for (std::size_t i = 0; i < value.size(); ++i)
      value[i] = std::numeric_limits<std::int32_t>::max() - static_cast<int>(i);
    const std::byte* const from = reinterpret_cast<const std::byte*>(value.data());
    std::array<std::int32_t, 40> result{};
    std::byte* const to = reinterpret_cast<std::byte*>(result.data());
    reduce_arguments a;
    a.sources = &from;
    a.source_count = 1;
    a.destinations = &to;
    a.destination_count = 1;
    a.count = value.size();
    a.finish = true;
    for (const int divisor : {1, 3, 1 << 20, (1 << 20) + 1, std::numeric_limits<int>::max()}) {
      a.divisor = divisor;
      reduction_for<std::int32_t, average>(set)(a);
      for (std::size_t i = 0; i < value.size(); ++i) REQUIRE(result[i] == value[i] / divisor);
    }
  }
}

TEST_CASE("averages of halves neither overflow nor underflow, also side by side") {
  const std::vector<float16> column = {float16(16384.0f), float16(0x1p-24f), float16(1.0f)};
  for (const instruction_set set : instruction_sets()) {
    std::vector<std::vector<float16>> ranks(8);
    for (auto& values : ranks)
      for (std::size_t i = 0; i < 100; ++i) values.push_back(column[i % column.size()]);
    const auto result = reduced<float16, average>(set, ranks);
    for (std::size_t i = 0; i < result.size(); ++i) REQUIRE(result[i].bits == column[i % column.size()].bits);
  }
}

TEST_CASE("one contribution comes back to the last element, whatever the operator") {
  for (const instruction_set set : instruction_sets())
    for (std::size_t count = 1; count <= 4097; count = count == 70 ? 4097 : count + 1) {
      std::vector<std::vector<bfloat16>> one(1);
      for (std::size_t i = 0; i < count; ++i) one[0].push_back(bfloat16(static_cast<float>(i % 250)));
      const auto check = [&](const std::vector<bfloat16>& result) {
        REQUIRE(std::memcmp(result.data(), one[0].data(), count * sizeof(bfloat16)) == 0);
      };
      check(reduced<bfloat16, average>(set, one));
      check(reduced<bfloat16, sum>(set, one));
      check(reduced<bfloat16, maximum>(set, one));
      check(reduced<bfloat16, logical_or>(set, one));
    }
}

namespace {

struct matrix {
  int a, b, c, d;
  bool operator==(const matrix&) const = default;
};
struct matrix_product {
  matrix operator()(const matrix& x, const matrix& y) const {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
  }
};

}  // namespace

TEST_CASE("a functor sees its operands from left to right") {
  const auto product_of = [](int ranks) {
    std::vector<std::vector<matrix>> values;
    for (int r = 0; r < ranks; ++r) values.emplace_back(200, matrix{r + 1, 1, 1, 0});
    return values;
  };
  const matrix_product multiply;
  for (const instruction_set set : instruction_sets()) {
    for (const matrix& m : reduced<matrix, matrix_product>(set, product_of(3), &multiply))
      REQUIRE(m == matrix{10, 3, 7, 2});
    for (const matrix& m : reduced<matrix, matrix_product>(set, product_of(5), &multiply))
      REQUIRE(m == matrix{225, 43, 157, 30});
    for (const matrix& m : reduced<matrix, matrix_product>(set, product_of(7), &multiply))
      REQUIRE(m == matrix{9976, 1393, 6961, 972});
  }
}

namespace {

/// The last operand of all, weighted by what came before: no two orders give the same.
template <class T>
struct in_order {
  int factor;  ///< a functor may have a state
  T operator()(const T& a, const T& b) const {
    return static_cast<T>(static_cast<float>(a) * static_cast<float>(factor) + static_cast<float>(b));
  }
};

/// No default constructor, no assignment, an odd size.
class triple {
 public:
  triple(std::uint8_t x, std::uint8_t y, std::uint8_t z) : m_x(x), m_y(y), m_z(z) {}
  triple(const triple&) = default;
  triple& operator=(const triple&) = delete;
  bool operator==(const triple&) const = default;
  triple operator+(const triple& other) const {
    return {static_cast<std::uint8_t>(m_x + other.m_x), static_cast<std::uint8_t>(m_y + other.m_y),
            static_cast<std::uint8_t>(m_z + other.m_z)};
  }

 private:
  std::uint8_t m_x, m_y, m_z;
};
static_assert(element<triple>);

struct large {
  std::array<std::int64_t, 100> values;
};
struct alignas(128) wide {
  std::int32_t value;
};

template <class T>
std::byte* bytes_of(std::vector<T>& v) {
  return reinterpret_cast<std::byte*>(v.data());
}

/// Calls the loop for `count` elements made by make(source, index), at addresses off by `offset` bytes and more, and
/// returns whether all results are what combining one by one gives and the guards are intact.
template <class T, class Op, class Make, class Equal>
bool element_loop_is_right(instruction_set set, const Op& op, int sources, int destinations, std::size_t count,
                           std::size_t offset, bool non_temporal, bool in_place, Make make, Equal equal) {
  std::vector<guarded_bytes> room;
  for (int i = 0; i < sources + destinations; ++i) room.emplace_back(count * sizeof(T) + 300);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (int s = 0; s < sources; ++s) {
    std::byte* const p =
        room[static_cast<std::size_t>(s)].place(count * sizeof(T), offset * static_cast<std::size_t>(s + 1) % 64);
    for (std::size_t i = 0; i < count; ++i) toroid::detail::store_element(p + i * sizeof(T), make(s, i));
    from.push_back(p);
  }
  for (int d = 0; d < destinations; ++d) {
    if (in_place && d < sources)
      to.push_back(const_cast<std::byte*>(from[static_cast<std::size_t>(d)]));
    else
      to.push_back(room[static_cast<std::size_t>(sources + d)].place(count * sizeof(T), offset));
  }
  reduce_arguments a;
  a.sources = from.data();
  a.source_count = sources;
  a.destinations = to.data();
  a.destination_count = destinations;
  a.count = count;
  a.non_temporal = non_temporal;
  a.functor = &op;
  reduction_for<T, Op>(set)(a);
  bool right = true;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<T> value{make(0, i)};
    for (int s = 1; s < sources; ++s) {
      const T next = op(value.back(), make(s, i));
      value.push_back(next);
    }
    for (std::byte* const p : to)
      right = right && equal(toroid::detail::load_element<T>(p + i * sizeof(T)), value.back());
  }
  for (std::size_t i = 0; i < room.size(); ++i)
    if (i < from.size() || !(in_place && i - from.size() < from.size())) right = right && room[i].intact();
  return right;
}

template <class T, class Op, class Make, class Equal>
void check_element_loop(const Op& op, Make make, Equal equal) {
  for (const instruction_set set : instruction_sets())
    for (const int sources : {1, 2, 3, 5})
      for (const int destinations : {1, 2})
        for (const std::size_t count : {0u, 1u, 2u, 7u, 8u, 9u, 63u, 64u, 65u, 127u, 128u, 200u})
          for (const std::size_t offset : {std::size_t{0}, sizeof(T) % 64, std::size_t{1}, std::size_t{16}})
            for (const int variant : {0, 1, 2, 3}) {
              const bool right = element_loop_is_right<T>(set, op, sources, destinations, count, offset,
                                                          (variant & 1) != 0, (variant & 2) != 0, make, equal);
              if (!right)
                FAIL("sources " << sources << " destinations " << destinations << " count " << count << " offset "
                                << offset << " variant " << variant);
            }
  SUCCEED();
}

}  // namespace

TEST_CASE("functors of numbers, at any address") {
  const auto number = [](int s, std::size_t i) { return static_cast<float>(static_cast<int>(i % 10) + s); };
  check_element_loop<float>(in_order<float>{3}, number, same<float>);
  check_element_loop<std::int16_t>(
      in_order<std::int16_t>{2}, [&](int s, std::size_t i) { return static_cast<std::int16_t>(number(s, i)); },
      same<std::int16_t>);
  check_element_loop<float16>(
      in_order<float16>{3}, [&](int s, std::size_t i) { return float16(number(s, i)); }, same<float16>);
  check_element_loop<double>(
      commutative([](auto a, auto b) { return a * b; }), [&](int s, std::size_t i) { return double{number(s, i)}; },
      same<double>);
}

TEST_CASE("structs of any size and alignment, without constructor and assignment") {
  const auto byte = [](int s, std::size_t i) { return static_cast<std::uint8_t>(i * 3 + static_cast<std::size_t>(s)); };
  const auto equal = [](const auto& a, const auto& b) { return a == b; };
  check_element_loop<triple>(
      sum{}, [&](int s, std::size_t i) { return triple(byte(s, i), 1, byte(s, i + 1)); }, equal);
  check_element_loop<matrix>(
      matrix_product{},
      [](int s, std::size_t i) {
        return matrix{s + 1, static_cast<int>(i % 3), 1, 0};
      },
      equal);
  check_element_loop<wide>([](const wide& a, const wide& b) { return wide{2 * a.value + b.value}; },
                           [&](int s, std::size_t i) { return wide{byte(s, i)}; },
                           [](const wide& a, const wide& b) { return a.value == b.value; });
  check_element_loop<large>(
      [](large a, const large& b) {
        for (std::size_t k = 0; k < a.values.size(); ++k) a.values[k] = 2 * a.values[k] + b.values[k];
        return a;
      },
      [&](int s, std::size_t i) {
        large x{};
        for (std::size_t k = 0; k < x.values.size(); ++k) x.values[k] = byte(s, i + k);
        return x;
      },
      [](const large& a, const large& b) { return a.values == b.values; });
}

TEST_CASE("complex numbers and arrays by operators of the library") {
  using complex = std::complex<float>;
  const auto make = [](int s, std::size_t i) { return complex(static_cast<float>(i % 5), static_cast<float>(s)); };
  const auto equal = [](const auto& a, const auto& b) { return a == b; };
  check_element_loop<complex>(sum{}, make, equal);
  check_element_loop<complex>(product{}, make, equal);
  using vector = std::array<double, 3>;
  const auto make_vector = [](int s, std::size_t i) { return vector{static_cast<double>(i), 1.0 * s, 2.0}; };
  check_element_loop<vector>(sum{}, make_vector, equal);
  check_element_loop<vector>(maximum{}, make_vector, equal);
  for (const instruction_set set : instruction_sets()) {
    const auto mean =
        reduced<complex, average>(set, {std::vector<complex>(70, {1, 4}), std::vector<complex>(70, {3, 2})});
    for (const complex& z : mean) REQUIRE(z == complex(2, 3));
    const auto center =
        reduced<vector, average>(set, {std::vector<vector>(70, {1, 2, 3}), std::vector<vector>(70, {3, 2, 1})});
    for (const vector& v : center) REQUIRE(v == vector{2, 2, 2});
    const auto whole = reduced<std::array<int, 2>, average>(set, {{{-1, 7}}, {{-1, 8}}, {{-2, 9}}});
    CHECK(whole[0] == std::array<int, 2>{-1, 8});
  }
}

namespace {

/// The bits of a bfloat16 under another name, as a foreign library may have them.
struct foreign_bfloat {
  std::uint16_t storage;
};

}  // namespace
template <>
struct toroid::half_traits<foreign_bfloat> {
  using type = toroid::bfloat16;
};

TEST_CASE("foreign half types are mapped by a trait") {
  static_assert(toroid::detail::element_code<foreign_bfloat>() == toroid::detail::element_code<bfloat16>());
  const auto make = [](float x) { return foreign_bfloat{bfloat16(x).bits}; };
  for (const instruction_set set : instruction_sets()) {
    CHECK(reduction_for<foreign_bfloat, sum>(set) == reduction_for<bfloat16, sum>(set));
    const auto result = reduced<foreign_bfloat, sum>(
        set, {std::vector<foreign_bfloat>(50, make(1.5f)), std::vector<foreign_bfloat>(50, make(2.25f))});
    for (const auto& x : result) REQUIRE(x.storage == bfloat16(3.75f).bits);
  }
  CHECK(sum{}(make(1.0f), make(2.0f)).storage == bfloat16(3.0f).bits);
}

TEST_CASE("halves are added up as float and rounded once") {
  // Rounded after each step the small ones would be lost: 256 + 1 is 256 in bfloat16.
  const std::vector<bfloat16> ranks = {bfloat16(256), bfloat16(1), bfloat16(1), bfloat16(1)};
  check_all<bfloat16, sum>(ranks, bfloat16(259));
  CHECK(bfloat16(259).bits != bfloat16(256).bits);
  check_all<float16, sum>({float16(60000), float16(60000), float16(-60000)}, float16(60000));
}

TEST_CASE("copies, to several destinations, at any address") {
  constexpr std::size_t most = 1100;
  std::vector<guarded_bytes> room;
  for (int i = 0; i < 22; ++i) room.emplace_back(most + 64);
  std::mt19937 random(3);
  for (const instruction_set set : instruction_sets())
    for (const int destinations : {1, 2, 3, 20})
      for (const std::size_t count : counts_around_edges<std::byte>())
        for (const int variant : {0, 1, 2, 3}) {
          const bool non_temporal = (variant & 1) != 0, with_source = (variant & 2) != 0;
          const std::size_t shift = random() % 3 == 0 ? 0 : random() % 64;
          const auto place = [&](std::size_t i) { return room[i].place(count, i == 0 ? 0 : (shift * i) % 64); };
          std::byte* const source = place(0);
          for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<std::byte>(random());
          std::vector<std::byte> before(source, source + count);
          const std::byte* const from = source;
          std::vector<std::byte*> to;
          for (int d = 0; d < destinations; ++d) to.push_back(place(static_cast<std::size_t>(d) + 1));
          if (with_source) to[to.size() / 2] = source;
          reduce_arguments a;
          a.sources = &from;
          a.source_count = 1;
          a.destinations = to.data();
          a.destination_count = destinations;
          a.count = count;
          a.non_temporal = non_temporal;
          copy_for(set)(a);
          for (std::byte* const p : to) REQUIRE((count == 0 || std::memcmp(p, before.data(), count) == 0));
          for (const auto& r : room)
            if (&r - room.data() <= destinations) REQUIRE(r.intact());
        }
}

TEST_CASE("a copy does not write to the destination that is its source") {
  fenced_bytes room(4096);
  std::fill_n(room.first(), 4096, std::byte{7});
  REQUIRE(mprotect(room.first(), 4096, PROT_READ) == 0);
  const std::byte* const from = room.first();
  std::byte* const to = room.first();
  for (const instruction_set set : instruction_sets())
    for (const std::size_t count : {1u, 20u, 100u, 4096u})
      for (const bool non_temporal : {false, true}) {
        reduce_arguments a;
        a.sources = &from;
        a.source_count = 1;
        a.destinations = &to;
        a.destination_count = 1;
        a.count = count;
        a.non_temporal = non_temporal;
        copy_for(set)(a);
      }
  SUCCEED("a write would have ended the program");
}

namespace {

template <class T, class Op>
void check_fences(const void* functor = nullptr) {
  constexpr std::size_t most = 2048;
  fenced_bytes a(most), b(most), out(most);
  for (fenced_bytes* const room : {&a, &b, &out}) std::memset(room->first(), 0, most);
  for (const instruction_set set : instruction_sets())
    for (std::size_t count = 0; count * sizeof(T) <= most; count += count < 140 ? 1 : 97)
      for (const int variant : {0, 1, 2, 3}) {
        const std::size_t bytes = count * sizeof(T);
        const bool at_the_end = (variant & 1) != 0;
        const auto place = [&](const fenced_bytes& room) { return at_the_end ? room.last(bytes) : room.first(); };
        const std::array<const std::byte*, 2> from{place(a), place(b)};
        std::byte* const to = place(out);
        reduce_arguments arguments;
        arguments.sources = from.data();
        arguments.source_count = 2;
        arguments.destinations = &to;
        arguments.destination_count = 1;
        arguments.count = count;
        arguments.non_temporal = (variant & 2) != 0;
        arguments.functor = functor;
        reduction_for<T, Op>(set)(arguments);
        arguments.count = bytes;
        copy_for(set)(arguments);
      }
}

}  // namespace

TEST_CASE("nothing beyond the ends of a buffer is touched") {
  check_fences<float, sum>();
  check_fences<double, maximum>();
  check_fences<std::uint8_t, sum>();
  check_fences<float16, sum>();
  check_fences<bfloat16, average>();
  check_fences<int, average>();
  const in_order<float> f{3};
  check_fences<float, in_order<float>>(&f);
  const matrix_product multiply;
  check_fences<matrix, matrix_product>(&multiply);
  SUCCEED("a touch would have ended the program");
}

TEST_CASE("no elements, no pointers") {
  for (const instruction_set set : instruction_sets()) {
    const std::array<const std::byte*, 2> from{nullptr, nullptr};
    std::array<std::byte*, 2> to{nullptr, nullptr};
    for (const bool non_temporal : {false, true}) {
      reduce_arguments a;
      a.sources = from.data();
      a.source_count = 2;
      a.destinations = to.data();
      a.destination_count = 2;
      a.non_temporal = non_temporal;
      reduction_for<float, sum>(set)(a);
      reduction_for<int, average>(set)(a);
      reduction_for<std::complex<double>, sum>(set)(a);
      copy_for(set)(a);
    }
  }
  SUCCEED("an access would have ended the program");
}

TEST_CASE("types of the same representation share their loops") {
  const instruction_set set = instruction_set::baseline;
  CHECK(reduction_for<long, minimum>(set) == reduction_for<long long, minimum>(set));
  CHECK(reduction_for<int, sum>(set) == reduction_for<unsigned, sum>(set));
  CHECK(reduction_for<int, minimum>(set) != reduction_for<unsigned, minimum>(set));
}
