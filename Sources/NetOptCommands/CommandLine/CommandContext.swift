import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting

/// The parts of the process that a command uses: the environment variables, the standard streams, the date,
/// and the function that creates clients. Tests replace all of these.
package struct CommandContext: Sendable {
  /// The environment variables.
  var environment: [String: String]
  /// Standard input.
  var input: any ByteInput
  /// Standard output, for data.
  var output: any ByteOutput
  /// Standard error, for messages to people.
  var errors: any ByteOutput
  /// Creates a client, which the caller must shut down. Commands call `withClient` instead, which creates a
  /// client and shuts it down.
  var makeClient: @Sendable (ClientConfiguration) throws(NetOptError) -> any Client
  /// Returns the date of the system clock.
  var now: @Sendable () -> Date

  /// Returns the context of the process. Call this before the process opens a descriptor or starts a task.
  ///
  /// A process may start with a closed standard stream. Then a connection could get the descriptor number of
  /// the stream, and output would go to the connection. So the function opens /dev/null under this number, in
  /// the wrong direction: standard input for writing, the other two for reading. Every use of the stream then
  /// fails.
  package static func process() -> CommandContext {
    for (stream, flags) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(stream, F_GETFD) < 0 {
      // open(2) returns the lowest free descriptor number, which is the number of this stream.
      _ = open("/dev/null", flags)
    }
    return CommandContext(
      environment: ProcessEnvironment.variables,
      input: DescriptorInput(STDIN_FILENO),
      output: DescriptorOutput(STDOUT_FILENO, target: "standard output"),
      errors: DescriptorOutput(STDERR_FILENO, target: "standard error"),
      makeClient: { (configuration) throws(NetOptError) in try NetOptClient(configuration) },
      now: { Date() })
  }

  /// Returns the value of an environment variable; `nil` when the variable is missing or empty.
  func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// Prints a line on standard output.
  func print(_ line: String) throws(OutputError) { try output.write(line + "\n") }

  /// Prints a JSON value and a line end on standard output.
  func print(_ value: JSONValue) throws(OutputError) { try output.write(value.bytes() + [0x0a]) }

  /// Prints a one-line message on standard error: `netopt: …`.
  func say(_ message: String) { tell("netopt: \(Text.printable(message))\n") }

  /// Writes a text on standard error. Ignores a failure, because the command has no other place to report it.
  func tell(_ text: String) { try? errors.write(text) }

  /// The width of standard error in characters: the width of the terminal, else the value of the variable
  /// `COLUMNS`, else 80. The range is 1 to 500.
  var lineWidth: Int { width(of: errors) }

  /// The width of standard output in characters, for help texts. It follows the rule of `lineWidth`.
  var helpColumns: Int { width(of: output) }

  /// Returns the width of a standard stream in characters, by the rule of `lineWidth`.
  private func width(of stream: any ByteOutput) -> Int {
    min(max(stream.columns ?? environment["COLUMNS"].flatMap { Int($0) } ?? 80, 1), 500)
  }

  /// The width of a report on standard error in characters: `lineWidth`, but at least 80, because the tables
  /// of a report do not fit into less.
  var columns: Int { max(lineWidth, 80) }

  /// Creates a client, runs the work with it, and shuts the client down, even if the work fails. Prints the
  /// note and the warnings of the client on standard error.
  ///
  /// - Throws: the errors of the work; `unreadableFile` when the list or the file of certificate authorities
  ///   cannot be read; `invalidList`; other errors of `makeClient`.
  func withClient<Result>(
    _ configuration: ClientConfiguration, _ work: (any Client) async throws -> Result
  ) async throws -> Result {
    // Reads the beginning of the file of certificate authorities, to find out whether the file can be read.
    // The error of a file that the user has named must be `unreadableFile`; the client would report
    // `invalidConfiguration`. A file that is not regular is left to the client, which refuses it, because
    // opening a FIFO here would wait for a writer.
    if let file = configuration.tls.caFile, access(file, F_OK) != 0 || FileBytes.isRegular(file) {
      _ = try read(file, upTo: 0, for: .tls)
    }
    var configuration = configuration
    configuration.warningHandler = { say("warning: \($0.message)") }
    let client = try makeClient(configuration)
    if let note = client.listStatus.note { say("note: \(note)") }
    if let warning = client.listWarning { say("warning: \(warning.message)") }
    do {
      let result = try await work(client)
      await client.shutdown()
      return result
    } catch {
      await client.shutdown()
      throw error
    }
  }

  /// Reads a file, or standard input if the name is "-".
  ///
  /// - Parameters:
  ///   - limit: the maximum number of bytes that the caller accepts. If the file is larger, the function
  ///     returns its first `limit + 1` bytes, so that the caller can detect this.
  ///   - phase: the phase that the errors name. It tells what the file is for.
  /// - Throws: `unreadableFile` with the reason of the system; `cancelled` when the task is cancelled.
  func read(
    _ file: String, upTo limit: Int, for phase: NetOptError.Phase
  ) throws(NetOptError) -> [UInt8] {
    do {
      return file == "-" ? try input.readAll(upTo: limit) : try DescriptorInput.readFile(file, upTo: limit)
    } catch InputError.refused(let number) {
      let reason = String(cString: strerror(number))
      throw NetOptError(
        .unreadableFile, phase: phase,
        "cannot read \(Self.shown(file)): \(reason)",
        underlying: .init(.system, code: number, text: reason))
    } catch {
      throw NetOptError(.cancelled, phase: phase, "reading \(FileBytes.shown(file)) was interrupted")
    }
  }

  /// Reads a file as `read` does, but throws an error for a file of more than `limit` bytes.
  ///
  /// - Throws: the errors of `read`; `unreadableFile` when the file has more than `limit` bytes.
  func readWhole(
    _ file: String, upTo limit: Int, for phase: NetOptError.Phase
  ) throws(NetOptError) -> [UInt8] {
    let bytes = try read(file, upTo: limit, for: phase)
    guard bytes.count <= limit else {
      throw NetOptError(
        .unreadableFile, phase: phase, "\(Self.shown(file)) is larger than \(limit >> 20) MiB")
    }
    return bytes
  }

  /// The name of a file for messages.
  private static func shown(_ file: String) -> String {
    file == "-" ? "standard input" : FileBytes.shown(file)
  }
}

/// The part of `NetOptClient` that commands use. Tests replace it by a client with prepared results.
protocol Client: Sendable {
  /// The list in use.
  var list: EndpointList? { get }
  /// The status of the list in use, with its source.
  var listStatus: ListStatus { get }
  /// A problem with the list in use that the user should know about; `nil` when there is none.
  var listWarning: NetOptError? { get }
  /// What the client has counted.
  var metrics: ClientMetrics { get }
  /// Sends a request.
  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse
  /// Probes the endpoints of hosts. `hosts` is `nil` for all hosts in the list. `method` is `nil` for the
  /// configured method.
  func probe(hosts: [String]?, method: ProbeMethod?) async throws(NetOptError) -> [HostProbe]
  /// Resolves a host name. With `fresh`, the client ignores cached addresses.
  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses
  /// Shuts the client down. Returns when all resources of the client are released.
  func shutdown() async
}

extension NetOptClient: Client {}
