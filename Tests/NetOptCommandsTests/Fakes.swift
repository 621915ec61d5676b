import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting

@testable import NetOptCommands
import NetOptLocking

/// An output that keeps the written bytes in memory. With `columns`, it counts as a terminal of this width in
/// characters. With `failure`, every write throws that error.
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

/// An input that returns a text in pieces of at most 3 bytes, as a pipe may.
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

/// A body that returns scripted chunks. After the last chunk it throws `end`, or ends if `end` is `nil`.
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

/// A client without a network. It answers each request with the response or the error of a closure, and each
/// call of `probe` with the same results. `resolve` always fails. The client records what it was asked.
final class ScriptedClient: Client {
  let listWarning: NetOptError?
  let listStatus: ListStatus
  private let used: Locked<EndpointList?>
  /// Returns the response to a request, or throws the error of the request.
  private let answer: @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  /// The results that `probe` returns for all hosts.
  private let probes: [HostProbe]
  private let asked = Locked<[NetOptRequest]>([])
  private let probed = Locked<[(hosts: [String]?, method: ProbeMethod?)]>([])
  private let down = Locked(false)

  /// Makes a client.
  ///
  /// - Parameters:
  ///   - list: the list in use; `nil` for a client without a list.
  ///   - warning: the client's warning about its list.
  ///   - note: the note in the status of the list.
  ///   - probes: the results that `probe` returns.
  ///   - answer: the closure that answers requests. Default: it returns `Samples.response`.
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
  /// The requests that the client received, in order.
  var requests: [NetOptRequest] { asked.withLock(\.self) }
  /// The arguments of each call of `probe` that returned results, in order.
  var probings: [(hosts: [String]?, method: ProbeMethod?)] { probed.withLock(\.self) }
  var isShutDown: Bool { down.withLock(\.self) }

  var metrics: ClientMetrics { ClientMetrics() }

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

/// A finished run of the program in this process.
struct Run {
  /// The exit code.
  let code: Int32
  /// The text that the program wrote to standard output.
  let output: String
  /// The text that the program wrote to standard error.
  let errors: String
  /// The configurations of the clients that the program created, in order.
  let configurations: [ClientConfiguration]

  /// Runs `Program.netopt` until it ends. The program takes `Samples.now` for the date.
  ///
  /// - Parameters:
  ///   - arguments: the command and its arguments.
  ///   - client: the client that the program gets whenever it creates a client.
  ///   - input: the text of standard input.
  ///   - columns: the width of the terminal on standard error; `nil` if standard error is not a terminal.
  ///   - output: standard output.
  ///   - interruption: the interruption of the run, with which a test can send a signal to the program.
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

/// The configurations of the clients that a run has created so far.
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
