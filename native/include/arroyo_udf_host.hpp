/* arroyo_udf_host.hpp: plugins from C++17, without a library to link: what arroyo_udf.h says, with owners and types.
 *
 *     arroyo_udf::plugin geo = arroyo_udf::plugin::open("libgeo.so").value();
 *     arroyo_udf::function town = geo.find("town").value();
 *     arroyo_udf::results found = town.run(std::move(batch)).value();                   sync
 *
 *     arroyo_udf::runtime running = town.start().value();                               async
 *     running.send(first_id, batch).value();
 *     while (true) {
 *       arroyo_udf::drained next = running.drain().value();
 *       if (next.state == ARROYO_UDF_END) break;
 *       if (next.state == ARROYO_UDF_OK) take(next.rows);
 *       else running.wait(ARROYO_UDF_RESULTS, seconds(10)).value();
 *     }
 *
 * ERRORS      Each call answers a `result`: a value, or an `error` with status and text. `value()` throws the error; where
 *             exceptions are switched off it ends the program, so look with `ok()` first.
 * GUARANTEES  Arrays are released once, by their owner; a batch is moved into the plugin only if it was accepted. A runtime
 *             that goes out of scope is stopped and released. What a plugin says of itself is checked when it is opened.
 * ASSUMES     Arrow arrays come from the host's own library (Arrow C++, nanoarrow): `array` takes them as C structs. */
#ifndef ARROYO_UDF_HOST_HPP
#define ARROYO_UDF_HOST_HPP

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "arroyo_udf.h"

namespace arroyo_udf {

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

struct error {
  arroyo_udf_status status = ARROYO_UDF_INTERNAL; /* ARROYO_UDF_... */
  std::string text;
  bool is_retryable = false; /* the same call may succeed later */
};

/* A value, or why there is none. */
template <typename T>
class result {
 public:
  result(T value) : content_(std::move(value)) {}
  result(struct error error) : content_(std::move(error)) {}

  bool ok() const { return content_.index() == 0; }
  const struct error& error() const { return std::get<1>(content_); }
  T& value() & {
    require();
    return std::get<0>(content_);
  }
  T value() && {
    require();
    return std::move(std::get<0>(content_));
  }

 private:
  void require() const {
    if (ok()) return;
#ifdef __cpp_exceptions
    throw error();
#else
    std::abort();
#endif
  }
  std::variant<T, struct error> content_;
};

namespace detail {

/* The error of a call, as it fills it in. */
class slot {
 public:
  slot() { error_.size = sizeof error_; }
  ~slot() {
    if (error_.release != nullptr) error_.release(&error_);
  }
  slot(const slot&) = delete;
  slot& operator=(const slot&) = delete;
  arroyo_udf_error* get() { return &error_; }
  struct error of(arroyo_udf_status status) const {
    return {status, error_.text != nullptr ? error_.text : "no text", error_.retryable == ARROYO_UDF_YES};
  }

 private:
  arroyo_udf_error error_ = {};
};

inline bool failed(arroyo_udf_status status) { return status >= ARROYO_UDF_INVALID_ARGUMENT; }

/* Of a call without a value: true is ARROYO_UDF_OK; what false means stands at the call. */
inline result<bool> answer(arroyo_udf_status status, const slot& error) {
  if (failed(status)) return error.of(status);
  return status == ARROYO_UDF_OK;
}

}  // namespace detail

/* ---- Arrays ----------------------------------------------------------------------------------------------------- */

/* The owner of an Arrow array. */
class array {
 public:
  array() = default;
  explicit array(ArrowArray taken) : array_(taken) {}
  array(array&& other) noexcept : array_(std::exchange(other.array_, {})) {}
  array& operator=(array&& other) noexcept {
    if (this != &other) {
      reset();
      array_ = std::exchange(other.array_, {});
    }
    return *this;
  }
  ~array() { reset(); }

  bool is_there() const { return array_.release != nullptr; }
  int64_t length() const { return array_.length; }
  ArrowArray* get() { return &array_; }
  const ArrowArray* get() const { return &array_; }
  /* For a library that takes it over. */
  ArrowArray release() { return std::exchange(array_, {}); }

 private:
  void reset() {
    if (array_.release != nullptr) array_.release(&array_);
  }
  ArrowArray array_ = {};
};

/* Results: a struct array, and its schema, which lives as long as the process. */
struct results {
  array rows;
  const ArrowSchema* schema = nullptr;

  int64_t length() const { return rows.length(); }
  /* The number of a field (value, outcome, error, id, attempts); -1: these results have none. */
  int field(std::string_view name) const {
    for (int64_t i = 0; i < schema->n_children; i++)
      if (name == schema->children[i]->name) return static_cast<int>(i);
    return -1;
  }
};

/* state: ARROYO_UDF_OK: there are rows; ARROYO_UDF_WOULD_BLOCK: none yet; ARROYO_UDF_END: no more will come. */
struct drained {
  arroyo_udf_status state = ARROYO_UDF_WOULD_BLOCK;
  results rows;
};

/* ---- Runtimes --------------------------------------------------------------------------------------------------- */

/* A started async function. Any thread may call. */
class runtime {
 public:
  runtime(const arroyo_udf_table* table, arroyo_udf_handle handle) : table_(table), handle_(handle) {}
  runtime(runtime&& other) noexcept : table_(other.table_), handle_(std::exchange(other.handle_, 0)) {}
  runtime& operator=(runtime&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~runtime() {
    if (handle_ != 0) table_->release(handle_, nullptr);
  }

  arroyo_udf_handle handle() const { return handle_; }

  /* true: the batch was accepted, and is the plugin's; false: there is no room, and it stays as it is. */
  result<bool> send(uint64_t first_id, array& batch, const arroyo_udf_batch_context* context = nullptr) {
    detail::slot error;
    return detail::answer(table_->send(handle_, first_id, batch.get(), context, error.get()), error);
  }

  /* Up to max_rows rows that have ended; 0: any number. */
  result<drained> drain(uint64_t max_rows = 0) {
    detail::slot error;
    ArrowArray rows = {};
    const ArrowSchema* schema = nullptr;
    const arroyo_udf_status status = table_->drain_results(handle_, max_rows, &rows, &schema, error.get());
    if (detail::failed(status)) return error.of(status);
    if (status != ARROYO_UDF_OK) return drained{status, {}};
    return drained{status, {array(rows), schema}};
  }

  /* condition: ARROYO_UDF_RESULTS | ARROYO_UDF_ROOM. false: it did not hold within this time. */
  result<bool> wait(uint32_t condition, std::chrono::nanoseconds timeout) {
    detail::slot error;
    const auto within = static_cast<uint64_t>(timeout.count() < 0 ? 0 : timeout.count());
    return detail::answer(table_->wait(handle_, condition, within, error.get()), error);
  }

  /* One call of fn(data) when the condition holds, from any thread. false: it already holds, and there will be none. */
  result<bool> arm(uint32_t condition, void (*fn)(void*), void* data) {
    detail::slot error;
    const arroyo_udf_status status = table_->arm(handle_, condition, fn, data, error.get());
    if (detail::failed(status)) return error.of(status);
    return status != ARROYO_UDF_READY;
  }
  result<bool> disarm() {
    detail::slot error;
    return detail::answer(table_->disarm(handle_, error.get()), error);
  }

  result<bool> cancel(uint64_t first_id, uint64_t rows) {
    detail::slot error;
    return detail::answer(table_->cancel(handle_, first_id, rows, error.get()), error);
  }

  result<arroyo_udf_statistics> statistics() const {
    detail::slot error;
    arroyo_udf_statistics counters = {};
    counters.size = sizeof counters;
    const arroyo_udf_status status = table_->statistics(handle_, &counters, error.get());
    if (detail::failed(status)) return error.of(status);
    return counters;
  }

  /* mode: ARROYO_UDF_DRAIN or ARROYO_UDF_CANCEL. Rows that are left come out of `drain`. false: a call is stuck. */
  result<bool> stop(uint32_t mode, std::chrono::nanoseconds deadline) {
    detail::slot error;
    const auto within = static_cast<uint64_t>(deadline.count() < 0 ? 0 : deadline.count());
    return detail::answer(table_->stop_runtime(handle_, mode, within, error.get()), error);
  }

  /* Ends it before it goes out of scope, to learn whether its close has failed. false: a call is stuck. */
  result<bool> release() {
    detail::slot error;
    return detail::answer(table_->release(std::exchange(handle_, 0), error.get()), error);
  }

 private:
  const arroyo_udf_table* table_;
  arroyo_udf_handle handle_;
};

/* ---- Functions and plugins -------------------------------------------------------------------------------------- */

/* A function of a plugin, or of an instance of it. */
class function {
 public:
  function(const arroyo_udf_table* table, uint32_t number, const arroyo_udf_function* described)
      : table_(table), number_(number), described_(described) {}

  std::string_view name() const { return described_->name; }
  bool is_sync() const { return described_->kind == ARROYO_UDF_SYNC; }
  bool is_async() const { return described_->kind == ARROYO_UDF_ASYNC; }
  uint32_t kind() const { return described_->kind; }
  /* A struct with one child for each argument, and the type of a value. */
  const ArrowSchema* arguments() const { return described_->arguments; }
  const ArrowSchema* returns() const { return described_->returns; }
  const arroyo_udf_function* described() const { return described_; }

  /* Calls a sync function. The batch is released whatever the answer is. */
  result<results> run(array batch, const arroyo_udf_batch_context* context = nullptr) const {
    detail::slot error;
    ArrowArray rows = {};
    const ArrowSchema* schema = nullptr;
    const arroyo_udf_status status = table_->run(number_, batch.get(), context, &rows, &schema, error.get());
    if (status != ARROYO_UDF_OK) return error.of(status);
    return results{array(rows), schema};
  }

  /* Starts an async function. options: nullptr: as its author has chosen. */
  result<runtime> start(const arroyo_udf_options* options = nullptr) const {
    detail::slot error;
    arroyo_udf_handle handle = 0;
    const arroyo_udf_status status = table_->start(number_, options, &handle, error.get());
    if (status != ARROYO_UDF_OK) return error.of(status);
    return runtime(table_, handle);
  }

 private:
  const arroyo_udf_table* table_;
  uint32_t number_;
  const arroyo_udf_function* described_;
};

/* The functions of a plugin in workers, until it goes out of scope. */
class instance {
 public:
  instance(const arroyo_udf_isolation* isolation, arroyo_udf_instance opened, const arroyo_udf_descriptor* descriptor)
      : isolation_(isolation), opened_(opened), descriptor_(descriptor) {}
  instance(instance&& other) noexcept
      : isolation_(std::exchange(other.isolation_, nullptr)), opened_(other.opened_), descriptor_(other.descriptor_) {}
  instance& operator=(instance&&) = delete;
  ~instance() {
    if (isolation_ != nullptr) isolation_->close(&opened_, nullptr);
  }

  /* number: that of the function in its plugin. */
  function at(uint32_t number) const {
    return function(opened_.table, opened_.first + number, descriptor_->functions[number]);
  }

  result<bool> close() {
    detail::slot error;
    return detail::answer(std::exchange(isolation_, nullptr)->close(&opened_, error.get()), error);
  }

 private:
  const arroyo_udf_isolation* isolation_;
  arroyo_udf_instance opened_;
  const arroyo_udf_descriptor* descriptor_;
};

/* An opened library. It is never unloaded, so copies are cheap, and functions outlive it. */
class plugin {
 public:
  /* Checks the table and the descriptor. Runs no user code. */
  static result<plugin> open(const std::string& path) {
    /* A name without a slash would be looked for in the system's folders of libraries. */
    const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) return refused(std::string("cannot load: ") + dlerror());
    const auto* table = static_cast<const arroyo_udf_table*>(dlsym(library, "arroyo_udf_plugin"));
    if (table == nullptr) return refused("not a plugin: " + path + " has no symbol arroyo_udf_plugin");
    if (table->magic != ARROYO_UDF_MAGIC)
      return refused("not a plugin, or built before ABI version 1 was final (build it again): the table of " + path +
                     " does not begin with the magic number");
    if (table->abi_version != ARROYO_UDF_ABI_VERSION)
      return refused(path + " has ABI version " + std::to_string(table->abi_version) + ", this host has " +
                     std::to_string(ARROYO_UDF_ABI_VERSION) + ": build it again");
    if (table->table_size < ARROYO_UDF_TABLE_SIZE_1)
      return refused("the table of " + path + " is truncated: it has " + std::to_string(table->table_size) +
                     " bytes, this host needs " + std::to_string(ARROYO_UDF_TABLE_SIZE_1));
    const arroyo_udf_descriptor* descriptor = table->describe != nullptr ? table->describe() : nullptr;
    if (descriptor == nullptr || descriptor->size < ARROYO_UDF_DESCRIPTOR_SIZE_1)
      return refused("the descriptor of " + path + " breaks the contract");
    for (uint64_t i = 0; i < descriptor->n_functions; i++)
      if (descriptor->functions[i] == nullptr || descriptor->functions[i]->size < ARROYO_UDF_FUNCTION_SIZE_1)
        return refused("the descriptor of " + path + " breaks the contract");
    return plugin(table, descriptor);
  }

  std::string_view name() const { return descriptor_->name; }
  std::string_view language() const { return descriptor_->language; }
  const arroyo_udf_descriptor* descriptor() const { return descriptor_; }

  std::vector<function> functions() const {
    std::vector<function> all;
    for (uint32_t i = 0; i < descriptor_->n_functions; i++) all.emplace_back(table_, i, descriptor_->functions[i]);
    return all;
  }

  /* Its number among all. */
  result<uint32_t> number(std::string_view name) const {
    for (uint32_t i = 0; i < descriptor_->n_functions; i++)
      if (name == descriptor_->functions[i]->name) return i;
    return refused("plugin " + std::string(this->name()) + " has no function " + std::string(name));
  }

  result<function> find(std::string_view name) const {
    result<uint32_t> found = number(name);
    if (!found.ok()) return found.error();
    return function(table_, found.value(), descriptor_->functions[found.value()]);
  }

  /* Its functions in subinterpreters or processes. */
  result<instance> isolated(const arroyo_udf_isolation_options& options) const {
    const auto* isolation = static_cast<const arroyo_udf_isolation*>(table_->extension("isolation/1"));
    if (isolation == nullptr || isolation->size < ARROYO_UDF_ISOLATION_SIZE_1)
      return error{ARROYO_UDF_NOT_IMPLEMENTED, "this plugin has no isolation", false};
    detail::slot error;
    arroyo_udf_instance opened = {};
    opened.size = sizeof opened;
    const arroyo_udf_status status = isolation->open(&options, &opened, error.get());
    if (detail::failed(status)) return error.of(status);
    return instance(isolation, opened, descriptor_);
  }

 private:
  plugin(const arroyo_udf_table* table, const arroyo_udf_descriptor* descriptor)
      : table_(table), descriptor_(descriptor) {}
  static struct error refused(std::string text) { return {ARROYO_UDF_INVALID_ARGUMENT, std::move(text), false}; }
  const arroyo_udf_table* table_;
  const arroyo_udf_descriptor* descriptor_;
};

}  // namespace arroyo_udf

#endif
