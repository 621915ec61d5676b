import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting

/// The surroundings of a command: environment variables, standard streams, the clock, and the source of
/// clients. Tests substitute their own.
package struct CommandContext: Sendable {
  /// The environment variables.
  var environment: [String: String]
  /// Standard input.
  var input: any ByteInput
  /// Standard output, for data.
  var output: any ByteOutput
  /// Standard error, for messages to people.
  var errors: any ByteOutput
  /// Creates the client for a command. The command shuts the client down.
  var makeClient: @Sendable (ClientConfiguration) throws(NetOptError) -> any Client
  /// Returns the current date, for checks of expiry dates.
  var now: @Sendable () -> Date

  /// Returns the context of the process. Call this before the process opens a descriptor or starts a task.
  /// The function replaces each closed standard stream by /dev/null, opened in the wrong direction. So using
  /// the stream fails, and no connection gets the descriptor number of the stream.
  package static func process() -> CommandContext {
    for (stream, flags) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(stream, F_GETFD) < 0 {
      // open(2) returns the lowest free descriptor number, which is the number of this stream.
      _ = open("/dev/null", flags)
    }
    return CommandContext(
      environment: ProcessInfo.processInfo.environment,
      input: DescriptorInput(STDIN_FILENO),
      output: DescriptorOutput(STDOUT_FILENO, target: "standard output"),
      errors: DescriptorOutput(STDERR_FILENO, target: "standard error"),
      makeClient: { (configuration) throws(NetOptError) in try NetOptClient(configuration) },
      now: { Date() })
  }

  /// Returns the value of an environment variable; `nil` when the variable is not set or empty.
  func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// Prints a line on standard output.
  func print(_ line: String) throws(OutputError) { try output.write(line + "\n") }

  /// Prints a JSON value and a line end on standard output.
  func print(_ value: JSONValue) throws(OutputError) { try output.write(value.bytes() + [0x0a]) }

  /// Prints a one-line message on standard error: `netopt: …`.
  func say(_ message: String) { tell("netopt: \(Text.printable(message))\n") }

  /// Writes a text on standard error. Ignores a failure, because there is no other place to report it.
  func tell(_ text: String) { try? errors.write(text) }

  /// The number of characters per line of standard error: the width of the terminal, else `COLUMNS`, else 80.
  /// The range is 1 to 500.
  var lineWidth: Int { width(of: errors) }

  /// The number of characters per line of standard output, for help texts.
  var helpColumns: Int { width(of: output) }

  private func width(of stream: any ByteOutput) -> Int {
    min(max(stream.columns ?? environment["COLUMNS"].flatMap { Int($0) } ?? 80, 1), 500)
  }

  /// The number of characters per line of a report on standard error: at least 80, the width that reports
  /// need.
  var columns: Int { max(lineWidth, 80) }

  /// Creates a client, runs the work with it, and shuts the client down, even if the work fails.
  ///
  /// - Throws: the errors of the work; `unreadableFile` for the list and the certificate authorities;
  ///   `invalidList`.
  func withClient<Result>(
    _ configuration: ClientConfiguration, _ work: (any Client) async throws -> Result
  ) async throws -> Result {
    // The client checks this file too, but reports an unreadable file as an invalid configuration. Here a
    // user has named the file, so the error is `unreadableFile`. The client also refuses anything but a
    // regular file; this check skips those, because reading a FIFO would wait for a writer.
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
  ///   - limit: the maximum number of useful bytes. For a larger file the function returns one byte more, so
  ///     that the caller can detect that.
  ///   - phase: the phase for errors, which tells the purpose of the file.
  /// - Throws: `unreadableFile` with the system's reason; `cancelled`.
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

  /// Reads a whole file. Throws for a larger file, because the caller would take a part for the whole file.
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

  private static func shown(_ file: String) -> String {
    file == "-" ? "standard input" : FileBytes.shown(file)
  }
}

/// The part of `NetOptClient` that commands use. Tests implement it with scripts.
protocol Client: Sendable {
  /// The list in use.
  var list: EndpointList? { get }
  /// The status of the list in use, with its source.
  var listStatus: ListStatus { get }
  /// The problem with the list in use; `nil` when there is none.
  var listWarning: NetOptError? { get }
  /// Sends a request.
  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse
  /// Probes the endpoints of hosts; of all hosts in the list when `hosts` is `nil`.
  func probe(hosts: [String]?, method: ProbeMethod?) async throws(NetOptError) -> [HostProbe]
  /// Resolves a host name. With `fresh`, the client ignores cached addresses.
  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses
  /// Shuts the client down. Returns when all resources of the client are released.
  func shutdown() async
}

extension NetOptClient: Client {}
