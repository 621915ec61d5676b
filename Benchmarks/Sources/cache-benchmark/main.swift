// What a hit in the cache's tiers costs, and what memory takes beside what it counts. It belongs to the package above, because
// the stores are no part of the library's interface. Prints a line of JSON.
import CHeap
import Glibc
import NetOptCaching
import NetOptCommands
import NetOptCore
import Synchronization

let usage = """
  Usage: cache-benchmark hits [HITS [memory|disk]]
         cache-benchmark memory empty|small|middle|mixed|shrinking|alternating|variants [THREADS [MIB]]
  """

func fail(_ text: String) -> Never {
  let line = "cache-benchmark: \(text)\n"
  _ = write(STDERR_FILENO, line, line.utf8.count)
  exit(64)
}

/// Seconds of CPU that this thread has used; of the whole machine's time for what waits.
func seconds(_ clock: clockid_t) -> Double {
  var time = timespec()
  clock_gettime(clock, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

func key(_ number: Int) throws -> CacheKey {
  try CacheKey(api: "GET https://api.bench.example/items/\(number)", parameters: "page=\(number)&per_page=50")
}

/// Fields with texts of their own, as those that come from a network have.
func fields() -> HeaderFields {
  let shown = [
    ("Content-Type", "application/json; charset=utf-8"),
    ("Cache-Control", "max-age=600, stale-while-revalidate=30"),
    ("ETag", "\"5f2b0e8a1c9d4e77\""), ("Date", "Sat, 21 Nov 2026 10:00:00 GMT"), ("Vary", "Accept-Encoding"),
    ("Server", "bench"), ("X-Request-Id", "0f9a4c52-7a5e-4a5b-8a6e-2f1f0b1f2c3d"),
  ]
  return HeaderFields(
    shown.map {
      HeaderField(
        String(decoding: Array($0.0.utf8), as: UTF8.self), String(decoding: Array($0.1.utf8), as: UTF8.self))
    })
}

func entry(_ key: CacheKey, _ count: Int, variant: Int? = nil) -> CacheEntry {
  CacheEntry(
    key: key,
    selectors: variant.map {
      [CacheEntry.Selector(name: "x-variant-of-the-client", value: "variant number \($0)")]
    } ?? [],
    status: 200,
    fields: fields(),
    body: [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: count), requested: 1_763_719_200_000,
    received: 1_763_719_200_020, fetchMicroseconds: 20_000)
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// Nanoseconds that a hit takes: the median of ten rounds, the keys in random order.
func nanoseconds(_ store: some CacheStore, _ keys: [CacheKey], hits: Int, _ clock: clockid_t) -> Double {
  var random = SplitMix64(seed: 1)
  let order = (0..<hits / 10).map { _ in Int(random.below(UInt64(keys.count))) }
  var bytes = 0
  let rounds = (0..<10).map { _ in
    let start = seconds(clock)
    for index in order { for entry in store.entries(for: keys[index]) { bytes += entry.body.count } }
    return (seconds(clock) - start) / Double(order.count) * 1e9
  }
  guard bytes == order.count * 10 * 10_240 else { fail("not every look-up was a hit") }
  return median(rounds)
}

func hits(_ count: Int) throws -> String {
  let keys = try (0..<4000).map(key)
  let onDisk = try diskHits(count, Array(keys.prefix(1000)))
  return
    #"{"memory_hit_ns":\#(memoryHits(count, keys)),"disk_hit_us":\#(onDisk.hit),"disk_write_us":\#(onDisk.write)}"#
}

func memoryHits(_ count: Int, _ keys: [CacheKey]) -> Double {
  let memory = MemoryStore()
  for key in keys { memory.insert(entry(key, 10_240)) }
  return nanoseconds(memory, keys, hits: count, CLOCK_THREAD_CPUTIME_ID)
}

/// Microseconds for a hit and for a write.
func diskHits(_ count: Int, _ keys: [CacheKey]) throws -> (hit: Double, write: Double) {
  var template = Array("/tmp/netopt-cache-benchmark.XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { fail("no directory can be made in /tmp") }
  let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  defer {
    for name in ["responses.db", "responses.db-wal", "responses.db-shm", "lock"] {
      unlink("\(directory)/\(name)")
    }
    rmdir(directory + "/bodies")
    rmdir(directory)
  }
  let disk = DiskStore(directory) { fail($0.message) }
  let start = seconds(CLOCK_MONOTONIC)
  for key in keys { disk.insert(entry(key, 10_240)) }
  let write = (seconds(CLOCK_MONOTONIC) - start) / Double(keys.count) * 1e6
  // Time and not CPU: what a hit waits for counts.
  let hit = nanoseconds(disk, keys, hits: max(count / 50, 10), CLOCK_MONOTONIC) / 1000
  disk.close()
  return (hit, write)
}

/// Hits in one tier and nothing else, for those who count instructions.
func hits(_ count: Int, only tier: String) throws -> String {
  let keys = try (0..<1000).map(key)
  switch tier {
  case "memory": return #"{"memory_hit_ns":\#(memoryHits(count, keys))}"#
  case "disk": return #"{"disk_hit_us":\#(try diskHits(count, keys).hit)}"#
  default: fail(usage)
  }
}

/// Kibibytes in memory: proc(5), statm.
func resident() -> Int {
  let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
  defer { close(descriptor) }
  var buffer = [UInt8](repeating: 0, count: 200)
  let count = read(descriptor, &buffer, buffer.count)
  let fields = String(decoding: buffer[..<max(count, 0)], as: UTF8.self).split(separator: " ")
  return fields.count > 1 ? (Int(fields[1]) ?? 0) * 4 : 0
}

/// What goes through a store: how large the body of the next one is after so many bytes, and how many variants a key has.
struct Load {
  var variants = 1
  var size: (_ passed: Int) -> Int

  init?(_ name: String, _ limits: CacheLimits, seed: Int) {
    var random = SplitMix64(seed: 7 + UInt64(seed))
    switch name {
    case "empty": size = { _ in 0 }
    case "small": size = { _ in 1000 }
    case "middle": size = { _ in 10_240 }
    case "mixed": size = { _ in Int(random.below(8) == 0 ? random.below(500_000) : random.below(20_000)) }
    // As many as there can be, and then few: the tables were made for more, and the heap is full of small gaps.
    case "shrinking":
      size = { passed in
        passed < limits.maxBytes * 5 / 4 ? 0 : 50_000 + Int(random.below(1_000_000))
      }
    // One kind and then another, again and again.
    case "alternating":
      size = { passed in
        passed / limits.maxBytes % 2 == 0 ? Int(random.below(4000)) : 20_000 + Int(random.below(300_000))
      }
    case "variants":
      variants = 16
      size = { _ in Int(random.below(3000)) }
    default: return nil
    }
  }
}

/// Runs a closure on so many threads at once, with each one's number, and waits for all of them.
func onThreads(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) {
  final class Start: Sendable {
    let number: Int
    let work: @Sendable (Int) -> Void
    init(_ number: Int, _ work: @escaping @Sendable (Int) -> Void) {
      (self.number, self.work) = (number, work)
    }
  }
  let threads = (0..<count).map { number in
    var thread = pthread_t()
    let start = Unmanaged.passRetained(Start(number, work))
    let failure = pthread_create(
      &thread, nil,
      { argument in
        // The thread has the reference that was retained for it.
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        start.work(start.number)
        return nil
      }, start.toOpaque())
    if failure != 0 { fail("a thread cannot be started: \(String(cString: strerror(failure)))") }
    return thread
  }
  for thread in threads { pthread_join(thread, nil) }
}

/// How much memory a store takes at most, by what it may take, in blocks that are in use and in the process, while five times
/// as much goes through it from each of some threads.
func memory(_ name: String, threads: Int, mebibytes: Int) throws -> String {
  var limits = CacheLimits.memory
  limits.maxBytes = mebibytes << 20
  guard Load(name, limits, seed: 0) != nil else { fail("there is no load \(name)") }
  let store = MemoryStore(limits, heap: SystemHeap())
  let before = resident()
  let usedBefore = Int(netopt_heap_used())
  let most = Atomic(0)
  let mostUsed = Atomic(0)
  let counted = Atomic(0)
  onThreads(threads) { [limits] thread in
    guard let load = Load(name, limits, seed: thread) else { return }
    var passed = 0
    var looked = 0
    var number = 0
    func named(_ number: Int) -> CacheKey {
      do { return try key((number / load.variants) * threads + thread) } catch { fail("\(error)") }
    }
    while passed < 5 * limits.maxBytes {
      let variant = load.variants > 1 ? number % load.variants : nil
      let new = entry(named(number), load.size(passed), variant: variant)
      passed += new.weight
      store.insert(new)
      // Some are asked for again, so that both queues fill up.
      if number % 3 == 0 { for _ in 0..<2 { _ = store.entries(for: named(number - number % 5)) } }
      number += 1
      if passed - looked > limits.maxBytes / 200 {
        looked = passed
        most.max(resident() - before, ordering: .relaxed)
        // It goes through all that is free, and is slow.
        if thread == 0 { mostUsed.max(Int(netopt_heap_used()) - usedBefore, ordering: .relaxed) }
        counted.max(store.usage.bytes, ordering: .relaxed)
      }
    }
  }
  let allowed = Double(limits.maxBytes) / 1024
  let usage = store.usage
  return
    #"{"load":"\#(name)","threads":\#(threads),"mib":\#(mebibytes),"keys":\#(usage.keys),"#
    + #""overhead":\#(Double(usage.overhead) / 1024 / allowed),"#
    + #""counted":\#(Double(counted.load(ordering: .relaxed)) / 1024 / allowed),"#
    + #""allocated":\#(Double(mostUsed.load(ordering: .relaxed)) / 1024 / allowed),"#
    + #""resident":\#(Double(most.load(ordering: .relaxed)) / allowed)}"#
}

/// A number of the command line.
func count(_ index: Int, _ usual: Int) -> Int {
  guard CommandLine.arguments.count > index else { return usual }
  guard let count = Int(CommandLine.arguments[index]), (1...4096).contains(count) else { fail(usage) }
  return count
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "hits":
  guard let count = Int(arguments.count > 2 ? arguments[2] : "1000000"), count >= 1000 else {
    fail("HITS is 1000 or more")
  }
  print(try arguments.count > 3 ? hits(count, only: arguments[3]) : hits(count))
case "memory" where (3...5).contains(arguments.count):
  print(try memory(arguments[2], threads: count(3, 1), mebibytes: count(4, 64)))
default: fail(usage)
}
