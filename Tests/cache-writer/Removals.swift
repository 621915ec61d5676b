import Glibc
import NetOptCaching
import NetOptCore
import NetOptLocking

/// Makes this process unable to create threads: each would get a stack of 128 TiB, which no process can have
/// (pthread_setattr_default_np(3), which Swift does not import).
private func refuseThreads() {
  typealias SetDefault = @convention(c) (UnsafePointer<pthread_attr_t>) -> Int32
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  pthread_attr_setstacksize(&attributes, 1 << 47)
  guard let address = dlsym(nil, "pthread_setattr_default_np") else { fatalError("no such function") }
  // The type is that of the man page.
  _ = unsafeBitCast(address, to: SetDefault.self)(&attributes)
}

/// Stores entries, removes each in another way through a `DiskCache`, and prints the names of the removals whose
/// entries the store still has.
func removeWithoutThread(in directory: String) throws {
  refuseThreads()
  guard !DiskThread().submit({}) else { fatalError("this process can create threads") }
  let store = DiskStore(directory) { fatalError("a warning: \($0.message)") }
  func entry(_ name: String, received: Int64) throws -> CacheEntry {
    CacheEntry(
      key: try CacheKey(api: name, parameters: "", partition: ""), status: 200, fields: [:], body: [1],
      requested: received, received: received, fetchMicroseconds: 1)
  }
  func report(_ names: [String]) throws {
    for name in names where !store.entries(for: try entry(name, received: 1).key).isEmpty { print(name) }
  }
  let names = ["remove", "removeAll(for:)", "insert"]
  for name in names { store.insert(try entry(name, received: 1)) }
  let cache = DiskCache(store)
  cache.remove(try entry("remove", received: 2))
  cache.removeAll(for: try entry("removeAll(for:)", received: 2).key)
  // The new entry cannot be written. The old one must not come back.
  cache.insert(try entry("insert", received: 2))
  try report(names)
  // More removals than may wait: they become one of everything.
  for name in ["removeAll", "many"] { store.insert(try entry(name, received: 1)) }
  cache.removeAll()
  try report(["removeAll"])
  store.insert(try entry("many", received: 1))
  let small = DiskCache(store, mostWaiting: 1)
  small.removeAll(for: try entry("many", received: 2).key)
  store.insert(try entry("after", received: 1))
  small.removeAll(for: try entry("after", received: 2).key)
  try report(["many", "after"])
}
