import Testing

@testable import NetOptCommands

@Suite struct OptionParserTests {
  static let insecure = Option("insecure", short: "k", "do not check")
  static let verbose = Option("verbose", short: "v", "say more")
  static let data = Option("data", short: "d", takes: .required("DATA"), "send")
  static let dns = Option("dns-servers", takes: .required("A,B"), "ask", environment: "TEST_DNS")
  static let noDirect = Option("no-direct", "by DNS")
  static let http1 = Option("http1.1", "old")
  static let http2 = Option("http2", "new")
  static let json = Option("json", takes: .optional("FILE"), "print JSON")
  static let ipv4 = Option("ipv4", short: "4", "old addresses")
  static let all = [insecure, verbose, data, dns, noDirect, http1, http2, json, ipv4]

  /// The parsed command line as text: the options as "long" or "long=value", then "|", then the operands.
  /// With `--help`, the text is "help".
  private func parsed(_ line: [String]) throws -> String {
    guard case .arguments(let arguments) = try OptionParser(Self.all).parse(line) else { return "help" }
    let given = arguments.given.map { $0.option.long + ($0.value.map { "=" + $0 } ?? "") }
    return (given + ["|"] + arguments.operands).joined(separator: " ")
  }

  /// Each argument is a command line and its meaning in the form of `parsed`. The meaning `nil` stands for a
  /// usage error.
  @Test(
    arguments: [
      ([], "|"),
      (["url"], "| url"),
      (["-k"], "insecure |"),
      (["-kv"], "insecure verbose |"),
      (["-kvd", "x"], "insecure verbose data=x |"),
      (["-kvdx"], "insecure verbose data=x |"),
      (["-dx"], "data=x |"),
      (["-d=x"], "data==x |"),
      (["-d", "-k"], "data=-k |"),
      (["-d", ""], "data= |"),
      (["-d", "--"], "data=-- |"),
      (["-4", "a"], "ipv4 | a"),
      (["--data", "x"], "data=x |"),
      (["--data=x"], "data=x |"),
      (["--data=x=y"], "data=x=y |"),
      (["--data="], "data= |"),
      (["--da", "x"], "data=x |"),
      (["--d=x", "--no"], nil),
      (["--dn=x", "--no"], "dns-servers=x no-direct |"),
      (["--http1", "--http2"], "http1.1 http2 |"),
      (["--json", "x"], "json | x"),
      (["--json=x"], "json=x |"),
      (["--json="], "json= |"),
      (["url", "-k", "b"], "insecure | url b"),
      (["-k", "--", "-v", "--data"], "insecure | -v --data"),
      (["--", "--"], "| --"),
      (["-"], "| -"),
      (["-v", "-v"], "verbose verbose |"),
      (["--help"], "help"),
      (["-kh"], "help"),
      (["-k", "--help", "--unknown"], "help"),
      (["--he"], "help"),
      (["--", "--help"], "| --help"),
    ] as [([String], String?)])
  func readsByTheRulesOfGetopt(line: [String], meaning: String?) throws {
    guard let meaning else {
      #expect(throws: UsageError.self) { try parsed(line) }
      return
    }
    #expect(try parsed(line) == meaning)
  }

  @Test(
    "the parser states the mistake and suggests a similar option",
    arguments: [
      (["--jsno"], "unknown option --jsno; did you mean --json?"),
      (["--insecrue=x"], "unknown option --insecrue; did you mean --insecure?"),
      (["--max-speed"], "unknown option --max-speed"),
      (["--=x"], "unknown option --"),
      (["-z"], "unknown option -z"),
      (["-kz"], "unknown option -z"),
      (["-json"], "unknown option -j; did you mean --json?"),
      (["--http"], "--http is ambiguous: --http1.1, --http2; write more of the name"),
      (["--d", "x"], "--d is ambiguous: --data, --dns-servers; write more of the name"),
      (["--insecure=yes"], "--insecure takes no value; remove \"=\" and the text after it"),
      (["--data"], "--data needs a value: --data DATA"),
      (["-kd"], "-d needs a value: -d DATA"),
    ])
  func messages(line: [String], message: String) {
    #expect(throws: UsageError(message)) { try parsed(line) }
  }
}
