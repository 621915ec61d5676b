import NetOptCore
import Testing

@testable import NetOptCommands

@Suite struct ArgumentsTests {
  /// The words that an option takes as its value.
  private enum Word: String, CaseIterable { case tcp, tls }

  /// Parses a command line of a program that has the options of `OptionParserTests`.
  private func arguments(_ line: [String], _ environment: [String: String] = [:]) throws -> Arguments {
    let parser = OptionParser(OptionParserTests.all, environment: environment)
    guard case .arguments(let arguments) = try parser.parse(line) else {
      throw UsageError("help was not expected")
    }
    return arguments
  }

  @Test("a repeated option has its last value, and all its values can be read")
  func repeatedOption() throws {
    let arguments = try arguments(["-d", "a", "--data=b", "-k"])
    #expect(arguments.value(of: OptionParserTests.data) == "b")
    #expect(arguments.values(of: OptionParserTests.data) == ["a", "b"])
    #expect(arguments.has(OptionParserTests.insecure))
    #expect(!arguments.has(OptionParserTests.verbose))
  }

  @Test("the last of several exclusive options counts")
  func exclusiveOptions() throws {
    let versions = [OptionParserTests.http1, OptionParserTests.http2]
    #expect(try arguments(["--http2", "--http1.1", "-k"]).last(of: versions) == OptionParserTests.http1)
    #expect(try arguments(["-k"]).last(of: versions) == nil)
  }

  @Test("an option overrides its variable, and an empty variable does not count")
  func optionAndVariable() throws {
    let environment = ["TEST_DNS": "::1"]
    let dns = OptionParserTests.dns
    #expect(try arguments([], environment).value(of: dns) == "::1")
    #expect(try arguments([], environment).name(of: dns) == "TEST_DNS")
    #expect(try arguments(["--dns-servers=a"], environment).value(of: dns) == "a")
    #expect(try arguments(["--dns-servers=a"], environment).name(of: dns) == "--dns-servers")
    #expect(try arguments([], ["TEST_DNS": ""]).value(of: dns) == nil)
    // Without a value, the name of the variable is used too.
    #expect(try arguments([]).name(of: dns) == "TEST_DNS")
  }

  @Test(
    "an option takes a whole number in its range", arguments: [("0", 0), ("7", 7), ("10", 10), ("+3", 3)])
  func readsWholeNumbers(text: String, number: Int) throws {
    #expect(try arguments(["-d", text]).integer(OptionParserTests.data, in: 0...10) == number)
  }

  @Test(
    "an option refuses a text that is no whole number in its range",
    arguments: ["", "-1", "11", "1.5", "x", "1x", " 1", "99999999999999999999"])
  func invalidWholeNumbers(text: String) throws {
    let arguments = try arguments(["-d", text])
    #expect(throws: UsageError("--data takes a whole number from 0 to 10, not \"\(text)\"")) {
      try arguments.integer(OptionParserTests.data, in: 0...10)
    }
  }

  @Test(arguments: [
    ("0", Duration.zero), ("0.5", .milliseconds(500)), ("2", .seconds(2)), ("1e-3", .milliseconds(1)),
    ("31536000", .seconds(31_536_000)),
  ])
  func readsSeconds(text: String, duration: Duration) throws {
    #expect(try arguments(["-d", text]).seconds(OptionParserTests.data) == duration)
  }

  @Test(
    "an option refuses a text that is no number of seconds in its range",
    arguments: ["", "-1", "nan", "inf", "0x10", "1s", "1e99", "31536001", "."])
  func invalidSeconds(text: String) throws {
    let arguments = try arguments(["-d", text])
    #expect(throws: UsageError("--data takes a number from 0 to 31536000, not \"\(text)\"")) {
      try arguments.seconds(OptionParserTests.data)
    }
  }

  @Test("an option takes one of its words and suggests one for a mistyped word")
  func choice() throws {
    #expect(try arguments(["-d", "tls"]).choice(OptionParserTests.data, of: Word.self) == .tls)
    #expect(try arguments([]).choice(OptionParserTests.data, of: Word.self) == nil)
    let mistyped = try arguments(["-d", "tsl"])
    #expect(throws: UsageError("--data takes tcp or tls, not \"tsl\"; did you mean tls?")) {
      try mistyped.choice(OptionParserTests.data, of: Word.self)
    }
  }
}
