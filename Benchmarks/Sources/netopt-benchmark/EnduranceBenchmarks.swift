import CHeap
import Glibc
import NetOpt
import Synchronization

/// What the process has of the system's now.
struct Footprint {
  /// The resident memory, after the allocator has given back what it can (malloc_trim(3)).
  let residentKiB: Int
  let descriptors: Int
  let threads: Int

  static var now: Footprint {
    malloc_trim(0)
    return Footprint(
      residentKiB: residentKiB, descriptors: entries("/proc/self/fd"), threads: status("Threads"))
  }

  /// The resident memory as it is.
  static var residentKiB: Int { status("VmRSS") }

  /// A number of proc_pid_status(5).
  private static func status(_ field: String) -> Int {
    guard let file = fopen("/proc/self/status", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, Int32(line.count), file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if text.hasPrefix(field + ":") { return Int(text.filter(\.isNumber)) ?? 0 }
    }
    return 0
  }

  private static func entries(_ path: String) -> Int {
    guard let directory = opendir(path) else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    // ".", ".." and the directory's own.
    return count - 3
  }
}

/// So many requests at once, and what they leave behind. The server is stopped until all wait: a peak would have requests that
/// are answered before the last ones begin.
enum WaitingBenchmark {
  static let options = ["--url", "--cacert", "--connect-to", "-n", "--rounds", "--server-pid"]

  /// Counts the calls that have begun.
  private final class Begun: CallObserver {
    private let count = Atomic(0)

    var all: Int { count.load(ordering: .acquiring) }

    func callWillStart(_ id: UInt64, _ request: NetOptRequest) {
      count.add(1, ordering: .acquiringAndReleasing)
    }
  }

  static func run(_ options: Options) async throws -> String {
    let request = try NetOptRequest(.get, try options.required("--url"))
    let count = try options.count("-n", 10_000)
    let server = pid_t(try options.count("--server-pid", 0))
    guard server > 0 else { throw UsageError("--server-pid is missing") }
    let begun = Begun()
    var configuration = try ClientConfiguration.measured(options)
    configuration.observers.append(begun)
    let client = try NetOptClient(configuration)
    // Without questions: those of so many would be what is measured.
    let question = try Question(request, number: nil)
    try await Load.expectAnswer(question, client)
    let load = Load(client: client, questions: [question], count: count, streams: count, usesLoop: true)
    let before = Footprint.now
    var failed = 0
    var waiting: [Int] = []
    var after: [Int] = []
    for _ in 0..<(try options.count("--rounds", 3)) {
      let target = begun.all + count
      kill(server, SIGSTOP)
      async let outcome = load.perform()
      while begun.all < target { await Task.yield() }
      // In the turn of the first hop all are handed to libcurl, and at its end sent as far as they may be.
      for _ in 0..<2 { await Task(executorPreference: client.loopExecutor) {}.value }
      waiting.append(Footprint.residentKiB)
      kill(server, SIGCONT)
      failed += await outcome.failed
      after.append(Footprint.now.residentKiB)
    }
    await client.shutdown()
    let end = Footprint.now
    return """
      {"waiting":\(count),"failed":\(failed),"before_kib":\(before.residentKiB),\
      "waiting_kib":\(waiting),"after_kib":\(after),"end_kib":\(end.residentKiB)}
      """
  }
}

/// Very many requests: memory, descriptors and threads are to stay where they are after the first tenth.
enum SoakBenchmark {
  static let options = ["--url", "--cacert", "--connect-to", "-n", "-c", "--expect"]
  /// What memory may grow by after the first tenth, in KiB.
  private static let growth = 1024

  static func run(_ options: Options) async throws -> String {
    let request = try NetOptRequest(.get, try options.required("--url"))
    let count = try options.count("-n", 1_000_000)
    let client = try NetOptClient(try ClientConfiguration.measured(options))
    let streams = try options.count("-c", 100)
    let expectation = try Expectation(options.text("--expect"))
    let load = Load(
      client: client,
      questions: try Question.all(request, expecting: expectation), count: count / 10,
      streams: streams, usesLoop: true, keepsLatencies: false, expectation: expectation)
    var failed = 0
    var wrong = 0
    var samples: [Footprint] = []
    for _ in 0..<10 {
      let outcome = await load.perform()
      failed += outcome.failed
      wrong += outcome.wrong
      samples.append(Footprint.now)
    }
    await client.shutdown()
    let first = samples[0]
    let isFlat = samples.dropFirst().allSatisfy {
      $0.residentKiB <= first.residentKiB + growth && $0.descriptors <= first.descriptors
        && $0.threads <= first.threads
    }
    return """
      {"requests":\(count / 10 * 10),"failed":\(failed),"wrong":\(wrong),"rss_kib":\(samples.map(\.residentKiB)),\
      "descriptors":\(samples.map(\.descriptors)),"threads":\(samples.map(\.threads)),"flat":\(isFlat)}
      """
  }
}
