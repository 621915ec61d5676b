import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting

/// What a command has to do with: the environment, the streams, and where clients come from. Tests put their own in.
package struct CommandContext: Sendable {
  /// The environment variables.
  var environment: [String: String]
  /// Standard input.
  var input: any ByteInput
  /// Standard output: data.
  var output: any ByteOutput
  /// Standard error: messages for people.
  var errors: any ByteOutput
  /// Makes the client that a command uses. The command shuts it down.
  var makeClient: @Sendable (ClientConfiguration) throws(NetOptError) -> any Client
  /// The date, for what expires.
  var now: @Sendable () -> Date

  /// The context of the process. To be called before anything is opened and the first task is started: a standard
  /// stream that is closed gets /dev/null in its place, the wrong way round, so that using it fails and no connection
  /// gets its number.
  package static func process() -> CommandContext {
    for (stream, flags) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(stream, F_GETFD) < 0 {
      // The lowest free number is given, which is this one.
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

  /// The value of an environment variable; an empty one counts as not set.
  func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// Prints a line on standard output.
  func print(_ line: String) throws(OutputError) { try output.write(line + "\n") }

  /// Prints a JSON value and a line end on standard output.
  func print(_ value: JSONValue) throws(OutputError) { try output.write(value.bytes() + [0x0a]) }

  /// Says in one line what went wrong, on standard error: `netopt: …`.
  func say(_ message: String) { tell("netopt: \(Text.printable(message))\n") }

  /// Writes a text for people on standard error. When that fails there is nothing left to tell it to.
  func tell(_ text: String) { try? errors.write(text) }

  /// How many characters fit on a line of standard error: what the terminal says, else `COLUMNS`, else 80.
  var lineWidth: Int {
    min(max(errors.columns ?? environment["COLUMNS"].flatMap { Int($0) } ?? 80, 1), 500)
  }

  /// How many characters a line of a report on standard error may have: at least the 80 for which reports are made.
  var columns: Int { max(lineWidth, 80) }

  /// Makes a client, works with it, and shuts it down however the work ends.
  ///
  /// - Throws: what the work throws; `unreadableFile` for the list and the authorities; `invalidList`.
  func withClient<Result>(
    _ configuration: ClientConfiguration, _ work: (any Client) async throws -> Result
  ) async throws -> Result {
    // The client looks too, but for a program it is a setting; here it is a file that a person named.
    // What is no regular file it refuses as well: opening a FIFO would wait for a writer.
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

  /// Reads a file, or standard input when it is called "-".
  ///
  /// - Parameters:
  ///   - limit: the most bytes that are taken; one more is read, so that the caller sees that there are more.
  ///   - phase: what the file is read for.
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

  /// Reads a whole file. A part of it would be taken for all of it.
  ///
  /// - Throws: as `read`, and `unreadableFile` when the file has more than `limit` bytes.
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

/// What commands need of a client; `NetOptClient` has it all, tests script it.
protocol Client: Sendable {
  /// The list in use.
  var list: EndpointList? { get }
  /// Where the list in use is from.
  var listStatus: ListStatus { get }
  /// What is to be said about the list although it is used.
  var listWarning: NetOptError? { get }
  /// Performs a request.
  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse
  /// Probes the endpoints of hosts, of all hosts of the list when `nil`.
  func probe(hosts: [String]?, method: ProbeMethod?) async throws(NetOptError) -> [HostProbe]
  /// Looks a name up.
  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses
  /// Ends the client; nothing of it is left afterwards.
  func shutdown() async
}

extension NetOptClient: Client {}
