import Foundation
import FoundationNetworking

// Requests through URLSession, to compare with: the flags -n, -c, --length and --url of `netopt-benchmark requests`, and its line. It
// cannot be told an address or an authority: the URL has the address in it, and the authority is named by the environment
// (URLSessionCertificateAuthorityInfoFile).

struct Settings {
  var url: URL?
  var requests = 10_000
  var streams = 100
  var length = 0
}

func settings() -> Settings {
  var settings = Settings()
  var arguments = CommandLine.arguments.dropFirst()
  while let option = arguments.popFirst(), let value = arguments.popFirst() {
    switch option {
    case "--url": settings.url = URL(string: value)
    case "-n": settings.requests = Int(value) ?? 0
    case "-c": settings.streams = Int(value) ?? 0
    case "--length": settings.length = Int(value) ?? 0
    default: break
    }
  }
  return settings
}

func cost() -> (user: Double, system: Double, wall: Double, resident: Int) {
  var usage = rusage()
  // RUSAGE_SELF, which Swift imports as another type than the parameter's.
  getrusage(0, &usage)
  func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
  return (
    seconds(usage.ru_utime), seconds(usage.ru_stime), ProcessInfo.processInfo.systemUptime, usage.ru_maxrss
  )
}

let given = settings()
guard let url = given.url, given.requests > 0, given.streams > 0, given.length > 0 else {
  FileHandle.standardError.write(
    Data("Usage: urlsession-requests --url URL --length BYTES [-n REQUESTS] [-c STREAMS]\n".utf8))
  exit(64)
}
let configuration = URLSessionConfiguration.ephemeral
configuration.httpMaximumConnectionsPerHost = given.streams
configuration.urlCache = nil
let session = URLSession(configuration: configuration)
_ = try await session.data(from: url)

let before = cost()
let outcomes = await withTaskGroup(of: [Double].self) { group in
  for stream in 0..<given.streams {
    let share = given.requests / given.streams + (stream < given.requests % given.streams ? 1 : 0)
    group.addTask {
      var latencies: [Double] = []
      for _ in 0..<share {
        let start = ProcessInfo.processInfo.systemUptime
        let answer = try? await session.data(from: url)
        let latency = ProcessInfo.processInfo.systemUptime - start
        let status = (answer?.1 as? HTTPURLResponse)?.statusCode
        latencies.append(status == 200 && answer?.0.count == given.length ? latency : -1)
      }
      return latencies
    }
  }
  var all: [Double] = []
  for await latencies in group { all += latencies }
  return all
}
let after = cost()
let sorted = outcomes.filter { $0 >= 0 }.sorted()
func percentile(_ part: Double) -> Int {
  sorted.isEmpty ? 0 : Int(sorted[min(sorted.count - 1, Int(part * Double(sorted.count)))] * 1e6)
}
print(
  """
  {"requests":\(outcomes.count),"failed":\(outcomes.count - sorted.count),"wall_s":\(after.wall - before.wall),\
  "cpu_user_s":\(after.user - before.user),"cpu_sys_s":\(after.system - before.system),\
  "max_rss_kib":\(after.resident),"p50_us":\(percentile(0.5)),"p99_us":\(percentile(0.99))}
  """)
