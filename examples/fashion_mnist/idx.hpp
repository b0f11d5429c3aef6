// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Reading of IDX files, the format in which MNIST and its successors are published, gzip-compressed or not.
///
/// An IDX file of bytes: 00 00 08 d, then d big-endian 32-bit dimensions, then the elements, last dimension fastest.
namespace idx {

/// A file is missing, unreadable, damaged, or not what it should be. The text begins with its path.
class error : public std::runtime_error {
 public:
  error(const std::string& path, const std::string& what) : std::runtime_error(path + ": " + what) {}
};

/// An array of bytes with its dimensions; the last one varies fastest.
struct array {
  std::vector<std::size_t> dimensions;
  std::vector<std::uint8_t> bytes;  ///< as many as the product of the dimensions
};

namespace detail {

struct gzip_closer {
  void operator()(gzFile file) const noexcept { gzclose_r(file); }
};

/// A file being read through zlib; one that is not compressed is read as it is.
class input {
 public:
  explicit input(std::string path) : m_path(std::move(path)) {
    errno = 0;  // gzopen leaves it alone when memory runs out
    m_file.reset(gzopen(m_path.c_str(), "rb"));
    if (!m_file) throw error(m_path, std::string("cannot open: ") + std::strerror(errno != 0 ? errno : ENOMEM));
  }

  const std::string& path() const noexcept { return m_path; }

  /// Reads up to bytes.size() bytes.
  /// @return how many; fewer only at the end of the file
  /// @throws error if the file cannot be read, or if its compressed data are damaged or cut short
  std::size_t read(std::span<std::uint8_t> bytes) {
    constexpr std::size_t most = std::size_t{1} << 20U;  // gzread counts in int
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto wanted = static_cast<unsigned>(std::min(most, bytes.size() - done));
      errno = 0;
      const int got = gzread(m_file.get(), bytes.data() + done, wanted);
      int code = Z_OK;
      const std::string text = gzerror(m_file.get(), &code);
      if (code == Z_ERRNO) throw error(m_path, std::string("cannot read: ") + std::strerror(errno));
      if (got < 0 || code != Z_OK) {
        const std::string prefix = m_path + ": ";  // zlib puts the name in front, as error does
        throw error(m_path,
                    "damaged compressed data: " + (text.starts_with(prefix) ? text.substr(prefix.size()) : text));
      }
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  std::string m_path;
  std::unique_ptr<std::remove_pointer_t<gzFile>, gzip_closer> m_file;
};

inline void read_header(input& in, std::span<std::uint8_t> bytes) {
  if (in.read(bytes) != bytes.size()) throw error(in.path(), "the file ends within its header");
}

}  // namespace detail

/// Reads a whole IDX file of bytes.
///
/// Memory grows with what the file really holds: a damaged header cannot ask for more.
///
/// @param path  the file, gzip-compressed or plain
/// @param dimensions  how many dimensions it must have, at least 1
/// @return the array; each of its dimensions is at least 1
/// @throws error if the file is missing, damaged, of another type or shape, too short, or too long
inline array read(const std::string& path, std::size_t dimensions) {
  constexpr std::uint8_t type_of_bytes = 0x08;
  detail::input in(path);

  std::array<std::uint8_t, 4> magic{};
  detail::read_header(in, magic);
  if (magic[0] != 0 || magic[1] != 0) throw error(path, "not an IDX file: it does not begin with two zero bytes");
  if (magic[2] != type_of_bytes) throw error(path, "IDX type " + std::to_string(magic[2]) + ", not 8 (bytes)");
  if (magic[3] != dimensions) {
    throw error(path, "an array of " + std::to_string(magic[3]) + " dimensions, not " + std::to_string(dimensions));
  }

  array result;
  std::size_t size = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::array<std::uint8_t, 4> field{};
    detail::read_header(in, field);
    std::size_t length = 0;
    for (const std::uint8_t digit : field) length = length << 8U | digit;
    if (length == 0) throw error(path, "dimension " + std::to_string(d) + " is zero");
    if (length > std::numeric_limits<std::size_t>::max() / size) throw error(path, "its dimensions overflow");
    size *= length;
    result.dimensions.push_back(length);
  }

  constexpr std::size_t most = std::size_t{1} << 24U;
  while (result.bytes.size() < size) {
    const std::size_t before = result.bytes.size();
    const std::size_t wanted = std::min(most, size - before);
    result.bytes.resize(before + wanted);
    const std::size_t got = in.read(std::span(result.bytes).subspan(before));
    if (got != wanted) {
      throw error(
          path, "its header promises " + std::to_string(size) + " bytes, but it holds " + std::to_string(before + got));
    }
  }

  std::array<std::uint8_t, 1> beyond{};  // reading to the end also makes zlib compare the checksum
  if (in.read(beyond) != 0) throw error(path, "it goes on after the " + std::to_string(size) + " bytes promised");
  return result;
}

}  // namespace idx
