// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "idx.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Fashion-MNIST: 28 x 28 grey images of ten kinds of clothing, 60,000 to train on and 10,000 to test with.
namespace fashion_mnist {

inline constexpr std::size_t height = 28;
inline constexpr std::size_t width = 28;
inline constexpr std::size_t features = height * width;
inline constexpr std::size_t classes = 10;

using image = std::span<const std::uint8_t, features>;

/// Images with their labels.
class labelled_images {
 public:
  /// Reads DIRECTORY/PREFIX-images-idx3-ubyte.gz and DIRECTORY/PREFIX-labels-idx1-ubyte.gz.
  /// @throws idx::error if a file is missing or damaged, or if the two do not belong together
  static labelled_images read(const std::string& directory, const std::string& prefix) {
    const std::string image_path = directory + '/' + prefix + "-images-idx3-ubyte.gz";
    const std::string label_path = directory + '/' + prefix + "-labels-idx1-ubyte.gz";
    idx::array images = idx::read(image_path, 3);
    idx::array labels = idx::read(label_path, 1);
    if (images.dimensions[1] != height || images.dimensions[2] != width) {
      throw idx::error(image_path, "images of " + std::to_string(images.dimensions[1]) + " x " +
                                       std::to_string(images.dimensions[2]) + ", not " + std::to_string(height) +
                                       " x " + std::to_string(width));
    }
    if (labels.dimensions[0] != images.dimensions[0]) {
      throw idx::error(label_path, std::to_string(labels.dimensions[0]) + " labels for " +
                                       std::to_string(images.dimensions[0]) + " images");
    }
    for (std::size_t i = 0; i < labels.bytes.size(); ++i) {
      if (labels.bytes[i] >= classes) {
        throw idx::error(label_path, "label " + std::to_string(i) + " is " + std::to_string(labels.bytes[i]) +
                                         ", beyond the " + std::to_string(classes) + " classes");
      }
    }
    return {std::move(images.bytes), std::move(labels.bytes)};
  }

  std::size_t size() const noexcept { return m_labels.size(); }

  /// @pre i < size()
  image pixels(std::size_t i) const { return image(m_pixels.data() + i * features, features); }

  /// The class of image i, in [0, classes).
  /// @pre i < size()
  std::size_t label(std::size_t i) const { return m_labels[i]; }

  /// Every pixel of every image.
  std::span<const std::uint8_t> all_pixels() const noexcept { return m_pixels; }

 private:
  labelled_images(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels)
      : m_pixels(std::move(pixels)), m_labels(std::move(labels)) {}

  std::vector<std::uint8_t> m_pixels;  // size() x height x width
  std::vector<std::uint8_t> m_labels;
};

/// Maps pixels to features of mean 0 and variance 1 over the images that it was made from: gradient descent gets
/// along far better with these.
class standardiser {
 public:
  /// Exact: pixels and their squares are summed as integers.
  explicit standardiser(const labelled_images& images) {
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (const std::uint64_t pixel : images.all_pixels()) {
      sum += pixel;
      squares += pixel * pixel;
    }
    const auto count = static_cast<double>(images.all_pixels().size());
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    const double scale = variance > 0 ? 1 / std::sqrt(variance) : 1;
    m_scale = static_cast<float>(scale);
    m_shift = static_cast<float>(-mean * scale);
  }

  std::array<float, features> operator()(image pixels) const {
    std::array<float, features> x;
    for (std::size_t i = 0; i < features; ++i) x[i] = m_scale * static_cast<float>(pixels[i]) + m_shift;
    return x;
  }

 private:
  float m_scale;
  float m_shift;
};

/// All that the training needs: read once, then only looked at.
struct dataset {
  labelled_images training;
  labelled_images test;
  standardiser standardise;

  explicit dataset(const std::string& directory)
      : training(labelled_images::read(directory, "train")),
        test(labelled_images::read(directory, "t10k")),
        standardise(training) {}
};

}  // namespace fashion_mnist
