/* The engine's side in C++17, over arroyo_udf_host.hpp: opens a plugin, prints what it contains, and calls one function.
 *
 *     c++ -std=c++17 -Inative/include examples/host/cpp/host.cpp -o host -ldl
 *     ./host PLUGIN.so             prints what it contains
 *     ./host PLUGIN.so FUNCTION    calls it with five sample rows, of which the third is null, and prints the results
 *     ./host PLUGIN.so FUNCTION subinterpreter    the same in two workers; or: process
 *
 * Knows int64 ("l"), float64 ("g") and utf8 ("u") only; an engine uses its own Arrow library. */
#include <array>
#include <cstdio>
#include <memory>

#include "arroyo_udf_host.hpp"

namespace {

constexpr int ROWS = 5, NULL_ROW = 2;
constexpr std::chrono::seconds PATIENCE(10);

/* ---- A batch of arguments --------------------------------------------------------------------------------------- */

const char TEXTS[] = "N14228" "N24211" "" "N3ALAA" "n535ua";

struct column {
  std::array<int64_t, ROWS> integers;
  std::array<double, ROWS> floats;
  std::array<int32_t, ROWS + 1> offsets{0, 6, 12, 12, 18, 24};
  uint8_t validity = static_cast<uint8_t>(~(1u << NULL_ROW));
  std::array<const void*, 3> buffers{};
  ArrowArray array{};
};

struct batch {
  std::vector<std::unique_ptr<column>> columns;
  std::vector<ArrowArray*> children;
  std::array<const void*, 1> no_buffer{nullptr};
};

arroyo_udf::result<arroyo_udf::array> make_batch(const ArrowSchema* arguments) {
  auto made = std::make_unique<batch>();
  for (int i = 0; i < arguments->n_children; i++) {
    const std::string format = arguments->children[i]->format;
    auto own = std::make_unique<column>();
    for (int row = 0; row < ROWS; row++) {
      own->integers[static_cast<size_t>(row)] = 1000 + 100 * row - 10 * i;
      own->floats[static_cast<size_t>(row)] = 0.5 * row;
    }
    const void* values = format == "l"   ? static_cast<const void*>(own->integers.data())
                         : format == "g" ? static_cast<const void*>(own->floats.data())
                         : format == "u" ? static_cast<const void*>(own->offsets.data())
                                         : nullptr;
    if (values == nullptr)
      return arroyo_udf::error{ARROYO_UDF_INVALID_ARGUMENT, std::string("argument ") + arguments->children[i]->name +
                                                                ": this host makes no values of type " + format};
    own->buffers = {&own->validity, values, TEXTS};
    own->array.length = ROWS;
    own->array.null_count = 1;
    own->array.n_buffers = format == "u" ? 3 : 2;
    own->array.buffers = own->buffers.data();
    own->array.release = [](ArrowArray* array) { array->release = nullptr; };
    made->children.push_back(&own->array);
    made->columns.push_back(std::move(own));
  }
  ArrowArray array = {};
  array.length = ROWS;
  array.n_buffers = 1;
  array.buffers = made->no_buffer.data();
  array.n_children = arguments->n_children;
  array.children = made->children.data();
  array.private_data = made.release();
  array.release = [](ArrowArray* taken) {
    for (int64_t i = 0; i < taken->n_children; i++)
      if (taken->children[i]->release != nullptr) taken->children[i]->release(taken->children[i]);
    taken->release = nullptr;
    delete static_cast<batch*>(taken->private_data);
  };
  return arroyo_udf::array(array);
}

/* ---- Printing --------------------------------------------------------------------------------------------------- */

/* On one line, because error texts may be tracebacks. */
void print_text(std::string_view text) {
  std::putchar('"');
  for (const char byte : text) {
    if (byte == '\n') {
      std::printf("\\n");
      continue;
    }
    if (byte == '"' || byte == '\\') std::putchar('\\');
    std::putchar(byte);
  }
  std::putchar('"');
}

template <typename T>
T value_at(const ArrowArray* array, int64_t i) {
  return static_cast<const T*>(array->buffers[1])[i];
}

void print_value(std::string_view format, const ArrowArray* array, int64_t row) {
  const int64_t i = array->offset + row;
  const auto* validity = static_cast<const uint8_t*>(array->n_buffers > 0 ? array->buffers[0] : nullptr);
  if (validity != nullptr && (validity[i / 8] >> (i % 8) & 1) == 0) {
    std::printf("null");
  } else if (format == "l") {
    std::printf("%lld", static_cast<long long>(value_at<int64_t>(array, i)));
  } else if (format == "L") {
    std::printf("%llu", static_cast<unsigned long long>(value_at<uint64_t>(array, i)));
  } else if (format == "S") {
    std::printf("%u", static_cast<unsigned>(value_at<uint16_t>(array, i)));
  } else if (format == "C") {
    std::printf("%u", static_cast<unsigned>(value_at<uint8_t>(array, i)));
  } else if (format == "g") {
    std::printf("%.17g", value_at<double>(array, i));
  } else if (format == "u") {
    const int32_t begin = value_at<int32_t>(array, i), end = value_at<int32_t>(array, i + 1);
    print_text({static_cast<const char*>(array->buffers[2]) + begin, static_cast<size_t>(end - begin)});
  } else {
    std::printf("(a value of type %.*s)", static_cast<int>(format.size()), format.data());
  }
}

void print_results(const arroyo_udf::results& results) {
  const ArrowArray* rows = results.rows.get();
  for (int64_t row = 0; row < rows->length; row++) {
    for (int64_t i = 0; i < rows->n_children; i++) {
      std::printf("%s%s=", i == 0 ? "" : " ", results.schema->children[i]->name);
      print_value(results.schema->children[i]->format, rows->children[i], rows->offset + row);
    }
    std::printf("\n");
  }
}

std::string type_of(const ArrowSchema* schema) {
  return std::string(schema->format) + ((schema->flags & ARROW_FLAG_NULLABLE) != 0 ? "?" : "");
}

void print_description(const arroyo_udf::plugin& plugin) {
  std::printf("plugin %s (%s)\n", plugin.name().data(), plugin.language().data());
  for (const arroyo_udf::function& function : plugin.functions()) {
    const char* kind = function.is_sync() ? "sync" : function.is_async() ? "async" : "unknown";
    std::string arguments;
    for (int64_t i = 0; kind[0] != 'u' && i < function.arguments()->n_children; i++) {
      const ArrowSchema* one = function.arguments()->children[i];
      arguments += std::string(i == 0 ? "" : ", ") + one->name + ": " + type_of(one);
    }
    const std::string returns = kind[0] == 'u' ? "" : type_of(function.returns());
    std::printf("%s %s(%s) -> %s\n", kind, function.name().data(), arguments.c_str(), returns.c_str());
  }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

/* Prints rows until there are none. */
void print_rows(arroyo_udf::runtime& runtime) {
  for (;;) {
    const arroyo_udf::drained next = runtime.drain().value();
    if (next.state != ARROYO_UDF_OK) return;
    print_results(next.rows);
  }
}

void call(const arroyo_udf::function& function) {
  arroyo_udf::array batch = make_batch(function.arguments()).value();
  if (function.is_sync()) return print_results(function.run(std::move(batch)).value());
  arroyo_udf::runtime runtime = function.start().value();
  if (runtime.send(1, batch).value()) { /* else an engine would wait for room and send again */
    runtime.wait(ARROYO_UDF_RESULTS, PATIENCE).value();
    print_rows(runtime);
  }
  /* Lets running rows finish; the remaining rows come out of drain, until END. */
  if (!runtime.stop(ARROYO_UDF_DRAIN, PATIENCE).value()) std::fprintf(stderr, "a call ignored its cancellation\n");
  print_rows(runtime);
  runtime.release().value();
}

void call_isolated(const arroyo_udf::plugin& plugin, std::string_view name, std::string_view mode) {
  arroyo_udf_isolation_options options = {};
  options.size = sizeof options;
  options.mode = mode == "process" ? ARROYO_UDF_PROCESS : ARROYO_UDF_SUBINTERPRETER;
  options.workers = 2;
  arroyo_udf::instance instance = plugin.isolated(options).value();
  call(instance.at(plugin.number(name).value()));
  instance.close().value();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: %s PLUGIN.so [FUNCTION [subinterpreter|process]]\n", argv[0]);
    return 2;
  }
  try {
    const arroyo_udf::plugin plugin = arroyo_udf::plugin::open(argv[1]).value();
    if (argc == 2) {
      print_description(plugin);
      return 0;
    }
    const arroyo_udf::function function = plugin.find(argv[2]).value();
    if (!function.is_sync() && !function.is_async()) {
      std::fprintf(stderr, "function %s has kind %u, which this host cannot call\n", argv[2], function.kind());
      return 1;
    }
    if (argc == 3) call(function);
    else call_isolated(plugin, argv[2], argv[3]);
  } catch (const arroyo_udf::error& error) {
    std::fprintf(stderr, "%s (status %d)\n", error.text.c_str(), error.status);
    return 1;
  }
  return 0;
}
