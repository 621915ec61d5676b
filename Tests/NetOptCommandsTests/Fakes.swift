import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting

@testable import NetOptCommands
import NetOptLocking

/// An output that keeps the written bytes in memory. With `columns`, it counts as a terminal. With `failure`,
/// every write throws that error.
final class MemoryOutput: ByteOutput {
  private let kept = Locked<[UInt8]>([])
  private let failure: OutputError?
  let columns: Int?
  var isTerminal: Bool { columns != nil }

  init(columns: Int? = nil, failure: OutputError? = nil) {
    self.columns = columns
    self.failure = failure
  }

  func write(_ bytes: [UInt8]) throws(OutputError) {
    if let failure { throw failure }
    kept.withLock { $0 += bytes }
  }

  var bytes: [UInt8] { kept.withLock(\.self) }
  var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// An input that returns at most 3 bytes of a text at each read.
final class MemoryInput: ByteInput {
  private let rest: Locked<[UInt8]>

  init(_ text: String) { rest = Locked(Array(text.utf8)) }

  func read(upTo count: Int) -> [UInt8] {
    rest.withLock { rest in
      let piece = Array(rest.prefix(min(count, 3)))
      rest.removeFirst(piece.count)
      return piece
    }
  }
}

/// A body that returns scripted chunks, and then ends or throws `end`.
final class ScriptedBody: BodySource {
  private let chunks: Locked<[[UInt8]]>
  private let end: NetOptError?
  let timings: Timings

  init(_ chunks: [String], end: NetOptError? = nil, timings: Timings = Timings()) {
    self.chunks = Locked(chunks.map { Array($0.utf8) })
    self.end = end
    self.timings = timings
  }

  func next() async throws(NetOptError) -> [UInt8]? {
    if let chunk = chunks.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return chunk }
    if let end { throw end }
    return nil
  }
}

/// A client that answers each request with a test's closure. It records the requests and the probes.
final class ScriptedClient: Client {
  let listWarning: NetOptError?
  let listStatus: ListStatus
  private let used: Locked<EndpointList?>
  private let answer: @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  private let probes: [HostProbe]
  private let asked = Locked<[NetOptRequest]>([])
  private let probed = Locked<[(hosts: [String]?, method: ProbeMethod?)]>([])
  private let down = Locked(false)

  init(
    list: EndpointList? = nil, warning: NetOptError? = nil, note: String? = nil, probes: [HostProbe] = [],
    answer: @escaping @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse = {
      (request) throws(NetOptError) in Samples.response(to: request)
    }
  ) {
    used = Locked(list)
    listWarning = warning
    var status = ListStatus(source: .none)
    status.note = note
    listStatus = status
    self.probes = probes
    self.answer = answer
  }

  var list: EndpointList? { used.withLock(\.self) }
  var requests: [NetOptRequest] { asked.withLock(\.self) }
  var probings: [(hosts: [String]?, method: ProbeMethod?)] { probed.withLock(\.self) }
  var isShutDown: Bool { down.withLock(\.self) }

  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    asked.withLock { $0.append(request) }
    return try await answer(request)
  }

  /// Replaces the list in use.
  func use(_ list: EndpointList) { used.withLock { $0 = list } }

  func probe(hosts: [String]?, method: ProbeMethod?) async throws(NetOptError) -> [HostProbe] {
    for host in hosts ?? [] where list?.hosts[host] == nil {
      throw NetOptError(.invalidRequest, phase: .list, "the IP list has no host \(host)")
    }
    probed.withLock { $0.append((hosts, method)) }
    return probes
  }

  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
    throw NetOptError(.nameNotFound, phase: .resolve, "\(host) is not known")
  }

  func shutdown() async { down.withLock { $0 = true } }
}

/// A run of the program in this process, with its exit code, its output and the configurations of its
/// clients.
struct Run {
  let code: Int32
  let output: String
  let errors: String
  let configurations: [ClientConfiguration]

  /// Runs `Program.netopt` with a scripted client.
  init(
    _ arguments: [String], client: ScriptedClient = ScriptedClient(), environment: [String: String] = [:],
    input: String = "", columns: Int? = nil, output: MemoryOutput = MemoryOutput(),
    interruption: Interruption = Interruption()
  ) async {
    let errors = MemoryOutput(columns: columns)
    let made = ConfigurationLog()
    let context = CommandContext(
      environment: environment, input: MemoryInput(input), output: output, errors: errors,
      makeClient: { (configuration) throws(NetOptError) in
        made.append(configuration)
        return client
      },
      now: { Samples.now })
    code = await Program.netopt.run(arguments, in: context, interruption: interruption).number
    self.output = output.text
    self.errors = errors.text
    configurations = made.takeAll()
  }
}

private final class ConfigurationLog: Sendable {
  private let configurations = Locked<[ClientConfiguration]>([])

  /// Returns the configurations and empties the log. This breaks a reference cycle: a configuration's warning
  /// handler refers to the context, and the context refers to the log.
  func takeAll() -> [ClientConfiguration] {
    configurations.withLock { configurations in
      defer { configurations = [] }
      return configurations
    }
  }

  func append(_ configuration: ClientConfiguration) { configurations.withLock { $0.append(configuration) } }
}
