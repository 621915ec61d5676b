import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests that the cache keeps callers apart. Callers with different credentials, fields and options share one
/// client. No caller may get a response or a failure that the server made for another caller.
@Suite struct KeptApartTests {
  /// The fields and the options of all requests of one caller.
  private struct Caller: Sendable {
    /// The credential fields, at most two.
    var credentials: HeaderFields = [:]
    /// The partition of the cache, which `X-Partition` names to the server; empty for none.
    var partition = ""
    var options = RequestOptions()
    /// The value of `X-Fault`, a key of `faults`: the server fails the requests of this caller. `nil` for a
    /// caller without this field.
    var fault: String?

    /// The value of `X-Name`, which is not a credential field; empty for none. The text of the server's
    /// failures contains it.
    var name = ""
    /// The value of `Accept-Language`; empty for none. Responses to requests for `/vary` depend on this field
    /// (`Vary`).
    var language = ""

    /// The partitions of callers. The last two are equal strings in Swift, but their bytes differ. So they
    /// are different partitions.
    private static let tenants = ["tenant0", "tenant1", "caf\u{e9}", "cafe\u{301}"]
    /// The values of `X-Name`. The last two are equal strings in Swift, but their bytes differ.
    private static let names = ["", "plain", "caf\u{e9}", "cafe\u{301}"]

    /// Names the caller as the server sees it: its credential fields and its partition. `who` makes the same
    /// text from a request.
    var identity: String {
      credentials.map { "\($0.name.lowercased())=\($0.value)" }.sorted().joined(separator: ",") + "/"
        + partition
    }

    init(_ random: inout SplitMix64) {
      // Half of the callers have no credentials. Half of the callers, independently, have the same options.
      // So many calls can wait for the fetch of another call.
      for _ in 0..<(random.below(2) * (1 + random.below(2))) {
        let name = CredentialNames.any(&random)
        if !credentials.contains(name: name) {
          credentials.append(HeaderField(name, "user\(random.below(3))"))
        }
      }
      if random.below(3) == 0 { partition = Self.tenants.randomElement(using: &random) ?? "" }
      if random.below(6) == 0 {
        fault = random.below(2) == 0 ? "busy" : faults.keys.sorted().randomElement(using: &random)
        name = Self.names.randomElement(using: &random) ?? ""
      }
      language = ["", "de", "en"].randomElement(using: &random) ?? ""
      options.timeout = .seconds(60)
      options.maxAttempts = 1
      if random.below(2) == 0 { return }
      options.version = [.automatic, .http1, .http2].randomElement(using: &random) ?? .automatic
      options.family = [nil, .v4, .v6].randomElement(using: &random) ?? nil
      options.routing = [.automatic, .dns].randomElement(using: &random) ?? .automatic
      options.maxAttempts = Int(1 + random.below(2))
      options.timeout = [.seconds(30), .seconds(60)].randomElement(using: &random)
    }
  }

  /// What a value of `X-Fault` makes the server do: fail the request with this code, or respond with status
  /// 503 for `nil`.
  private static let faults: [String: NetOptError.Code?] = [
    "refused": .invalidRequest, "closed": .receiveFailed, "reset": .sendFailed, "broken": .protocolViolation,
    "coded": .decodeFailed, "large": .headTooLarge, "silent": .timeout, "busy": nil,
  ]

  /// The options of a request as text. A failure to connect may depend on them, so its message contains this
  /// text.
  private static func manner(_ options: RequestOptions) -> String {
    "\(options.version) \(options.family.map { "\($0)" } ?? "any") \(options.routing) \(options.maxAttempts) \(options.timeout ?? .zero)"
  }

  /// Answers a request as the server. A response contains the path of its request and the caller. A request
  /// for `/down` fails, whoever sends it, with a message about its options. A request with `X-Fault` fails
  /// with a message about its caller.
  ///
  /// - Parameter number: how many requests have been sent, this one included.
  private static func answer(_ request: NetOptRequest, _ number: Int) async throws(NetOptError)
    -> NetOptResponse
  {
    // Lets other calls run meanwhile, so that some of them wait for this request.
    for _ in 0..<(number % 4) { await Task.yield() }
    let path = request.url.path
    if let fault = request.headers["X-Fault"] {
      guard let code = faults[fault] ?? nil else {
        return CacheLab.response(
          request, 503, [:], "the fault of \(who(request)) \(request.headers["X-Name"] ?? "")")
      }
      throw NetOptError(
        code, phase: .receive, "the fault of \(who(request)) \(request.headers["X-Name"] ?? "")")
    }
    if path.hasPrefix("/down") {
      throw NetOptError(.connectFailed, phase: .connect, "no way for \(manner(request.options))")
    }
    // The names of the paths are private, shared, never, trouble and vary.
    let fields: HeaderFields =
      switch path.dropFirst().first {
      case "p": ["Cache-Control": "private, max-age=60"]
      case "s": ["Cache-Control": "public, s-maxage=60, max-age=60"]
      case "n": ["Cache-Control": "no-store"]
      case "t": [:]
      default: ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]
      }
    return CacheLab.response(
      request, path.hasPrefix("/trouble") ? 503 : 200, fields,
      text(path, for: who(request), request.headers["Accept-Language"] ?? ""))
  }

  /// The body of a response.
  private static func text(_ path: some StringProtocol, for who: String, _ language: String) -> String {
    "\(path) for \(who)" + (path.hasPrefix("/vary") ? " in \(language)" : "")
  }

  /// Names the caller of a request, as `Caller.identity` does.
  private static func who(_ request: NetOptRequest) -> String {
    let others = ["x-partition", "x-fault", "x-name", "accept", "accept-language", "traceparent"]
    return request.headers.filter { !others.contains($0.name.lowercased()) }
      .map { "\($0.name.lowercased())=\($0.value)" }.sorted().joined(separator: ",") + "/"
      + (request.headers["X-Partition"] ?? "")
  }

  /// The number of calls for each seed. There are four seeds, so with `KEPT_APART_CALLS=25000` the test makes
  /// 100,000 calls in all.
  private static let calls = Int(ProcessInfo.processInfo.environment["KEPT_APART_CALLS"] ?? "") ?? 1500

  @Test(
    "no caller gets another caller's response or failure",
    arguments: [(1, false), (2, true), (3, false), (4, true)])
  func callers(seed: UInt64, onDisk: Bool) async throws {
    let directory = try TemporaryDirectory.make("kept-apart") + "/cache"
    let lab = try CacheLab(
      {
        $0.credentialFields.insert(CredentialNames.ours)
        if onDisk {
          $0.directory = directory
          // Memory is so small that most stored responses come from the disk.
          $0.maxBytes = 20_000
        }
      }, Self.answer)
    var random = SplitMix64(seed: seed)
    let callers = (0..<40).map { _ in Caller(&random) }
    let paths = ["/private", "/shared", "/never", "/trouble", "/down", "/vary"].flatMap { name in
      (0..<3).map { "\(name)/\($0)" }
    }
    var tally = Tally()
    for _ in 0..<(Self.calls / 50) {
      // These 50 calls run at the same time.
      let batch = (0..<50).map { _ in
        (callers.randomElement(using: &random) ?? Caller(&random), paths.randomElement(using: &random) ?? "/")
      }
      let client = lab.client
      tally = try await withThrowingTaskGroup(of: Tally.self) { [tally] group in
        for (caller, path) in batch { group.addTask { try await Self.call(path, by: caller, client) } }
        return try await group.reduce(into: tally) { $0.add($1) }
      }
    }
    #expect(tally.answers + tally.failures == Self.calls / 50 * 50)
    // Many responses were shared between calls, and failures occurred. Otherwise the test would show nothing.
    #expect(tally.shared > tally.answers / 4 && tally.failures > Self.calls / 20)
    await lab.client.shutdown()
  }

  /// The results of calls.
  private struct Tally: Sendable {
    /// The number of calls that got a response, without the 503 responses of the fault `busy`.
    var answers = 0
    /// How many of these responses came from the cache or from the fetch of another call.
    var shared = 0
    /// The number of all other calls.
    var failures = 0

    mutating func add(_ other: Tally) {
      answers += other.answers
      shared += other.shared
      failures += other.failures
    }
  }

  /// Whether two texts have the same bytes. For Swift's `==`, texts with different bytes can be equal.
  private static func isSame(_ one: String, _ other: String) -> Bool { one.utf8.elementsEqual(other.utf8) }

  /// Makes a call, and checks that the response or the failure is for this caller.
  private static func call(_ path: String, by caller: Caller, _ client: NetOptClient) async throws -> Tally {
    var request = try NetOptRequest(.get, "https://api.test\(path)", headers: caller.credentials)
    request.options = caller.options
    if !caller.partition.isEmpty {
      request.options.cache = CacheOptions(.http, partition: caller.partition)
      request.headers["X-Partition"] = caller.partition
    }
    request.headers["X-Fault"] = caller.fault
    if !caller.language.isEmpty { request.headers["Accept-Language"] = caller.language }
    if !caller.name.isEmpty { request.headers["X-Name"] = caller.name }
    // A tracing field has another value in each request. It must not keep calls from sharing a fetch.
    request.headers["traceparent"] = "00-\(UInt64.random(in: 0...UInt64.max))-1-01"
    do throws(NetOptError) {
      let response = try await client.execute(request)
      let text = String(decoding: try await response.body.collect(upTo: 10_000), as: UTF8.self)
      let isFault = caller.fault == "busy" && isSame(text, "the fault of \(caller.identity) \(caller.name)")
      #expect(isFault || isSame(text, Self.text(path, for: caller.identity, caller.language)))
      if isFault { return Tally(failures: 1) }
      return Tally(answers: 1, shared: response.cacheStatus.outcome == .miss ? 0 : 1)
    } catch {
      if error.code != .connectFailed {
        #expect(
          caller.fault.flatMap { faults[$0] ?? nil } == error.code
            && isSame(error.message, "the fault of \(caller.identity) \(caller.name)"), "\(error.message)")
      } else {
        #expect(error.message.contains("no way for \(manner(caller.options))"), "\(error.message)")
      }
      return Tally(failures: 1)
    }
  }
}
