import Glibc
import NetOptCore
import Testing

@testable import NetOptCommands

@Suite struct ProgramTests {
  /// A command that runs a test's closure.
  private struct Scripted: Command {
    var name = "work"
    var work: @Sendable (CommandContext) async throws -> ExitCode

    var declaration: CommandDeclaration {
      CommandDeclaration(
        name: name, summary: "do the work", details: "Does it.", operands: "[X]", operandCount: 0...1,
        options: [OptionGroup("Working", [Option("fast", "hurry")])],
        examples: [.init("netopt work", "works")])
    }

    func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
      try await work(context)
    }
  }

  private func context(output: MemoryOutput, errors: MemoryOutput) -> CommandContext {
    CommandContext(
      environment: [:], input: MemoryInput(""), output: output, errors: errors,
      makeClient: { (_) throws(NetOptError) in ScriptedClient() }, now: { Samples.now })
  }

  /// Runs a program whose only command calls `work`.
  private func run(
    _ interruption: Interruption = Interruption(),
    _ work: @escaping @Sendable (CommandContext) async throws -> ExitCode
  ) async -> (code: Int32, output: String, errors: String) {
    let (output, errors) = (MemoryOutput(), MemoryOutput())
    let code = await Program([Scripted(work: work)])
      .run(["work"], in: context(output: output, errors: errors), interruption: interruption)
    return (code.number, output.text, errors.text)
  }

  @Test func helpNamesEveryCommand() async {
    let run = await Run(["--help"])
    #expect(run.code == 0)
    for word in [
      "get", "probe", "iplist check", "iplist sign", "iplist verify", "iplist update", "NETOPT_IPLIST",
      "NETOPT_TRUSTED_KEYS", "NETOPT_REGION", "Exit codes:", "Examples:",
    ] {
      #expect(run.output.contains(word))
    }
    #expect(run.errors.isEmpty)
    #expect(await Run(["help"]).output == run.output)
    #expect(await Run(["-h"]).output == run.output)
    #expect(await Run(["help", "help"]).output == run.output)
  }

  @Test(
    "each command prints the same help with examples for -h, --help and the command help",
    arguments: [
      ["get"], ["probe"], ["iplist", "check"], ["iplist", "sign"], ["iplist", "verify"],
      ["iplist", "update"],
    ])
  func commandHelp(words: [String]) async {
    let help = await Run(words + ["--help"])
    #expect(help.code == 0)
    #expect(help.output.hasPrefix("Usage: netopt \(words.joined(separator: " ")) "))
    #expect(help.output.contains("Examples:\n  netopt "))
    #expect(await Run(["help"] + words).output == help.output)
    #expect(await Run(["help"] + words + ["--help"]).output == help.output)
    #expect(await Run(words + ["-h"]).output == help.output)
  }

  @Test(
    "help texts wrap at the terminal's width, at 60 to 100 columns", arguments: [nil, 40, 60, 77, 100, 250])
  func helpWidth(columns: Int?) async {
    let width = min(max(columns ?? 80, 60), 100)
    let commands = Program.netopt.commands.declarations
    for words in [[], ["iplist"], ["cache"]]
      + commands.map({ $0.name.split(separator: " ").map(String.init) })
    {
      let text = await Run(words + ["--help"], output: MemoryOutput(columns: columns)).output
      for line in text.split(separator: "\n") {
        // A line may be longer if it has no place for a break: a public key is one word, and a backslash
        // follows it.
        #expect(line.count <= width || line.split(separator: " ").count <= 2, "\(line)")
      }
      #expect(text.split(separator: "\n").contains { $0.count > width - 12 })
      guard let command = commands.first(where: { $0.name == words.joined(separator: " ") }) else { continue }
      // The text of the examples without the breaks inside command lines, which are marked with a backslash.
      let joined = text.replacing(" \\\n    ", with: " ")
      #expect(
        command.examples.allSatisfy { joined.contains("\n  \($0.line)\n      \($0.meaning.prefix(8))") })
      let flowing = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(command.examples.allSatisfy { flowing.contains($0.meaning) })
    }
  }

  @Test("a group of commands has its own help")
  func groupHelp() async {
    let help = await Run(["iplist", "--help"])
    #expect(help.code == 0)
    #expect(help.output.contains("iplist check"))
    #expect(await Run(["help", "iplist"]).output == help.output)
  }

  @Test("--version prints the versions of netopt and libcurl")
  func version() async {
    let run = await Run(["--version"])
    #expect(run.code == 0)
    #expect(run.output.hasPrefix("netopt 0."))
    #expect(run.output.contains("libcurl "))
    #expect(await Run(["-V"]).output == run.output)
  }

  @Test("the program without a command prints the usage on standard error with exit code 64")
  func noCommand() async {
    let run = await Run([])
    #expect(run.code == 64)
    #expect(run.output.isEmpty)
    #expect(run.errors.contains("Usage: netopt COMMAND"))
  }

  @Test(
    "a usage error has exit code 64 and a message that states the mistake and the help",
    arguments: [
      (["gte", "x"], #"unknown command "gte"; did you mean "get"? (see netopt --help)"#),
      (["frobnicate"], #"unknown command "frobnicate" (see netopt --help)"#),
      (["help", "porbe"], #"unknown command "porbe"; did you mean "probe"? (see netopt --help)"#),
      (["help", "get", "x"], #"unknown command "get x" (see netopt --help)"#),
      (["iplist"], "iplist needs a command: netopt iplist check|sign|verify|update|suggest"),
      (["iplist", "--json"], "iplist needs a command: netopt iplist check|sign|verify|update|suggest"),
      (
        ["iplist", "chekc"],
        #"unknown command "iplist chekc"; did you mean "iplist check"? (see netopt iplist --help)"#
      ),
      (["https://a.example/"], "https://a.example/ is not a command; run: netopt get https://a.example/"),
      (["--jsno"], "unknown option --jsno (see netopt --help)"),
      (["-k", "get"], "unknown option -k (see netopt --help)"),
      (["--version", "x"], "unexpected argument \"x\"; run: netopt --version"),
      (["--"], "a command is missing (see netopt --help)"),
      (["get"], "URL is missing: netopt get URL (see netopt get --help)"),
      (
        ["get", "a", "b"],
        "netopt get takes only URL, not 2 operands; quote a value that contains spaces (see netopt get --help)"
      ),
      (["get", "--jsno", "a"], "unknown option --jsno; did you mean --json? (see netopt get --help)"),
      (
        ["get", "--max-redirs", "x", "http://a/"],
        "--max-redirs takes a whole number from 0 to 1000, not \"x\" (see netopt get --help)"
      ),
      (
        ["get", "-m", "-1", "http://a/"],
        "--max-time takes a number from 0 to 31536000, not \"-1\" (see netopt get --help)"
      ),
      (["iplist", "check"], "FILE is missing: netopt iplist check FILE (see netopt iplist check --help)"),
    ])
  func usageErrors(line: [String], message: String) async {
    let run = await Run(line)
    #expect(run.code == 64)
    #expect(run.output.isEmpty)
    #expect(run.errors == "netopt: \(message)\n")
  }

  @Test(
    "an error decides the exit code, and its message has no control characters",
    arguments: [
      (NetOptError.Code.connectFailed, Int32(1)), (.timeout, 1), (.tlsFailed, 1), (.invalidURL, 64),
      (.invalidRequest, 64), (.invalidConfiguration, 64), (.invalidList, 65), (.unreadableFile, 65),
    ])
  func errorExitCodes(code: NetOptError.Code, number: Int32) async {
    let result = await run { _ in throw NetOptError(code, phase: .connect, "it\nfailed\u{1b}[31m") }
    #expect(result.code == number)
    #expect(result.errors == "netopt: it failed [31m\n")
  }

  @Test(
    "the message adds the text of a libcurl error only if it does not contain it already",
    arguments: [
      ("it failed", "it failed (curl 7: no luck)"), ("it had no luck", "it had no luck"),
    ])
  func underlyingError(message: String, text: String) async {
    let code = NetOptError.Underlying(.curl, code: 7, text: "no luck")
    let result = await run { _ in
      throw NetOptError(.connectFailed, phase: .connect, message, underlying: code)
    }
    #expect(result.errors == "netopt: \(text)\n")
  }

  @Test("the program exits with code 141 and no message when the reader of its output is gone")
  func closedReader() async {
    let result = await run { _ in throw OutputError(kind: .closed, target: "standard output") }
    #expect(result.code == 128 + SIGPIPE)
    #expect(result.errors.isEmpty)
  }

  @Test("the program reports a full disk with the file and a hint")
  func fullDisk() async {
    let result = await run { _ in throw OutputError(kind: .refused(ENOSPC), target: "page.html") }
    #expect(result.code == 1)
    #expect(
      result.errors
        == "netopt: cannot write to page.html: No space left on device; free some space or write elsewhere\n")
  }

  @Test(
    "a signal cancels the command, keeps its output and sets the exit code to 128 plus the number",
    arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
  func signal(signal: Int32, code: Int32) async {
    let interruption = Interruption()
    let result = await run(interruption) { context in
      interruption.receive(signal)
      // A second signal changes nothing here. In a real process, the second signal does not reach
      // `Interruption`: the signal ends the process.
      interruption.receive(SIGHUP)
      while !Task.isCancelled { await Task.yield() }
      try context.print("what there is")
      throw NetOptError(.cancelled, phase: .send, "cancelled")
    }
    #expect(result.code == code)
    #expect(result.output == "what there is\n")
    #expect(result.errors.isEmpty)
  }

  @Test("a signal before the command starts cancels it too")
  func earlySignal() async {
    let interruption = Interruption()
    interruption.receive(SIGTERM)
    let result = await run(interruption) { context in
      while !Task.isCancelled { await Task.yield() }
      return .ok
    }
    #expect(result.code == 143)
  }
}
