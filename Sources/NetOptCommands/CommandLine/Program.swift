import NetOpt
import NetOptCore

/// The program `netopt`. It finds the command, runs it, and reports the error that the command throws.
package struct Program: Sendable {
  /// The commands, in the order of the help text.
  let commands: CommandTable

  private static let version = Option("version", short: "V", "show the versions of netopt and its libraries")
  /// The arguments that ask for a help text. They are looked for after the name of a group, and ignored after
  /// `help`. After the name of a command, `OptionParser` finds them.
  private static let askForHelp = ["--help", "-h"]

  /// Creates a program with commands, in the order of the help text.
  init(_ commands: [any Command]) { self.commands = CommandTable(commands) }

  /// The program that is installed, with all its commands.
  package static let netopt = Program([
    GetCommand(), FetchCommand(), ProbeCommand(), BenchCommand(), CompareCommand(), MergeCommand(),
    ListCheckCommand(), ListSignCommand(), ListVerifyCommand(), ListUpdateCommand(), ListSuggestCommand(),
    SignCommand(), VerifyCommand(), KeysNewCommand(), KeysListCommand(),
    CacheStatsCommand(), CacheListCommand(), CacheExplainCommand(), CacheVerifyCommand(), CacheClearCommand(),
    CacheSimCommand(),
    ConfigCheckCommand(),
  ])

  /// Runs the program.
  ///
  /// - Parameters:
  ///   - arguments: the command line without the program's name.
  ///   - interruption: receives SIGINT and SIGTERM. The first signal cancels the task of the command.
  /// - Returns: the exit code of the command. If a signal has arrived, the exit code of the signal instead.
  ///   The function returns after the command has ended.
  package func run(
    _ arguments: [String], in context: CommandContext, interruption: Interruption
  ) async -> ExitCode {
    // The task waits until `onSignal` was called, so that a signal can cancel the command from its beginning.
    let (beginning, begin) = AsyncStream.makeStream(of: Never.self)
    let task = Task {
      for await _ in beginning {}
      return await run(arguments, in: context)
    }
    interruption.onSignal { task.cancel() }
    begin.finish()
    let code = await task.value
    return interruption.signal.map(ExitCode.signal) ?? code
  }

  /// Runs the program with the command line of the process. An invalid argument or environment variable is a
  /// usage error: `arguments` and `check` tell which are invalid.
  package func run(in context: CommandContext, interruption: Interruption) async -> ExitCode {
    let arguments: [String]
    do throws(UsageError) {
      arguments = try Self.arguments(CommandLine.argc, CommandLine.unsafeArgv)
      try Self.check(context.environment)
    } catch {
      context.say(error.message)
      return .usage
    }
    return await run(arguments, in: context, interruption: interruption)
  }

  /// Returns the arguments without the program's name.
  ///
  /// - Throws: `UsageError` for an argument that is not UTF-8: Swift would replace the invalid bytes, and the
  ///   request would contain other bytes than the argument. Also for an argument with a long run of combining
  ///   marks or of flag emoji, which take Swift very long (`SlowText`).
  private static func arguments(
    _ count: Int32, _ values: UnsafePointer<UnsafeMutablePointer<CChar>?>
  ) throws(UsageError) -> [String] {
    var arguments: [String] = []
    for index in 0..<Int(count) {
      guard index > 0, let value = values[index] else { continue }
      guard let argument = String(validatingCString: value) else {
        throw UsageError(
          "argument \(index) is not UTF-8; percent-encode the bytes in a URL, and put the bytes of a body in a file (-d @FILE)"
        )
      }
      guard !SlowText.hasLongRun(argument) else {
        throw UsageError("argument \(index) is not usable: \(SlowText.violation)")
      }
      arguments.append(argument)
    }
    return arguments
  }

  /// Checks that no variable `NETOPT_…` or `…_proxy` has a long run of combining marks or of flag emoji
  /// (`SlowText`).
  private static func check(_ environment: [String: String]) throws(UsageError) {
    for (name, value) in environment where name.hasPrefix("NETOPT_") || name.loweredASCII.hasSuffix("_proxy")
    {
      guard !SlowText.hasLongRun(value) else {
        throw UsageError("the environment variable \(name) is not usable: \(SlowText.violation)")
      }
    }
  }

  /// Runs the program and reports its error on standard error.
  private func run(_ arguments: [String], in context: CommandContext) async -> ExitCode {
    do {
      return try await dispatch(arguments, in: context)
    } catch let error as UsageError {
      context.say(error.message)
      return .usage
    } catch let error as NetOptError {
      // Prints no message for a user who has interrupted the program. In the next case, prints none if the
      // reader of the output has ended, as `head` does after some lines.
      if error.code != .cancelled { context.say(Self.text(of: error)) }
      return ExitCode(error)
    } catch let error as OutputError {
      if error.kind != .closed, error.kind != .cancelled { context.say(error.description) }
      return ExitCode(error)
    } catch {
      context.say("\(error)")
      return .failed
    }
  }

  /// Returns the message of an error. If a library caused the error, and the message does not contain the
  /// text of the library's error, the library's error follows in parentheses.
  private static func text(of error: NetOptError) -> String {
    let saysAll = error.underlying.map { error.message.contains($0.text) } ?? true
    return saysAll ? error.message : error.description
  }

  /// Runs the command, or prints the help text or the versions, as the arguments say.
  private func dispatch(_ arguments: [String], in context: CommandContext) async throws -> ExitCode {
    guard let first = arguments.first else {
      context.tell(try help(for: [], columns: context.lineWidth))
      return .usage
    }
    if first.hasPrefix("-") { return try runOptions(arguments, in: context) }
    if first == "help" {
      try context.output.write(
        try help(
          for: arguments.dropFirst().filter { !Self.askForHelp.contains($0) }, columns: context.helpColumns))
      return .ok
    }
    guard let (command, rest) = commands.find(arguments) else {
      guard arguments.count == 2, Self.askForHelp.contains(arguments[1]) else {
        throw commands.unknown(arguments)
      }
      try context.output.write(try help(for: [first], columns: context.helpColumns))
      return .ok
    }
    return try await run(command, rest, in: context)
  }

  /// Parses the arguments of a command, and runs it or prints its help text.
  ///
  /// - Parameter arguments: the arguments after the name of the command.
  private func run(
    _ command: any Command, _ arguments: [String], in context: CommandContext
  ) async throws -> ExitCode {
    let declaration = command.declaration
    do {
      let parser = OptionParser(declaration.options.flatMap(\.options), environment: context.environment)
      guard case .arguments(let arguments) = try parser.parse(arguments) else {
        try context.output.write(HelpText(columns: context.helpColumns).command(declaration))
        return .ok
      }
      try declaration.check(arguments.operands)
      return try await command.run(arguments, in: context)
    } catch let error as UsageError {
      throw UsageError("\(error.message) (see netopt \(declaration.name) --help)")
    }
  }

  /// Handles a command line that begins with an option, which must be `--help` or `--version`.
  private func runOptions(_ arguments: [String], in context: CommandContext) throws -> ExitCode {
    let seeHelp = "(see netopt --help)"
    let outcome: OptionParser.Outcome
    do { outcome = try OptionParser([Self.version]).parse(arguments) } catch {
      throw UsageError("\(error.message) \(seeHelp)")
    }
    guard case .arguments(let arguments) = outcome else {
      try context.output.write(try help(for: [], columns: context.helpColumns))
      return .ok
    }
    guard arguments.has(Self.version) else { throw UsageError("a command is missing \(seeHelp)") }
    if let extra = arguments.operands.first {
      throw UsageError("unexpected argument \"\(extra)\"; run: netopt --version")
    }
    let versions = NetOptVersion.libraries.map { "\($0.name) \($0.version)\n" }.joined()
    try context.output.write("netopt \(NetOptVersion.string)\n" + versions)
    return .ok
  }

  /// Returns the help text of the command or the group of commands that the words name; without words, the
  /// help text of the program.
  private func help(for words: [String], columns: Int) throws(UsageError) -> String {
    let text = HelpText(columns: columns)
    if words.isEmpty || words == ["help"] {
      return text.program(commands.declarations, options: [.help, Self.version])
    }
    if let (command, rest) = commands.find(words), rest.isEmpty { return text.command(command.declaration) }
    let group = commands.group(words[0])
    if words.count == 1, !group.isEmpty { return text.group(words[0], group) }
    throw commands.unknown(words)
  }
}
