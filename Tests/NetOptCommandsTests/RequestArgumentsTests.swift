import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting
import TestTools
import Testing

@testable import NetOptCommands

/// What `get` makes of its options, seen from the client that it asks.
@Suite struct RequestArgumentsTests {
  private func request(
    _ arguments: [String], input: String = "", environment: [String: String] = [:]
  ) async throws -> NetOptRequest {
    let client = ScriptedClient()
    let run = await Run(
      ["get"] + arguments + ["https://api.example.com/x"], client: client, environment: environment,
      input: input)
    #expect(run.errors.isEmpty)
    return try #require(client.requests.first)
  }

  private func body(of request: NetOptRequest) throws -> String {
    switch request.body.source {
    case .none: return "none"
    case .bytes(let bytes): return String(decoding: bytes, as: UTF8.self)
    case .stream: throw UsageError("a stream was not expected")
    }
  }

  @Test func isAGetWithTheLibrarysDefaults() async throws {
    let request = try await request([])
    #expect(request.method == .get)
    #expect(request.url.description == "https://api.example.com/x")
    #expect(request.headers.isEmpty)
    #expect(try body(of: request) == "none")
    #expect(request.options == RequestOptions())
  }

  @Test(arguments: [
    (["-X", "PUT"], "PUT"), (["-I"], "HEAD"), (["-d", "a"], "POST"), (["-X", "PUT", "-d", "a"], "PUT"),
    (["-I", "-X", "OPTIONS"], "OPTIONS"), (["--request=PURGE"], "PURGE"),
  ])
  func choosesTheMethod(arguments: [String], method: String) async throws {
    #expect(try await request(arguments).method.rawValue == method)
  }

  @Test func readsHeaders() async throws {
    let request = try await request([
      "-H", "Accept: text/plain", "--header=X-Empty;", "-HX-Tight:a:b", "-H", "accept:\t text/html ",
    ])
    #expect(
      Array(request.headers) == [
        HeaderField("Accept", "text/plain"), HeaderField("X-Empty", ""), HeaderField("X-Tight", "a:b"),
        HeaderField("accept", "text/html"),
      ])
  }

  @Test func joinsDataLikeAForm() async throws {
    let request = try await request(["-d", "a=1\n", "--data", "b=2"])
    #expect(try body(of: request) == "a=1\n&b=2")
    #expect(request.headers["Content-Type"] == "application/x-www-form-urlencoded")
  }

  @Test func leavesAContentTypeAlone() async throws {
    let request = try await request(["-d", "{}", "-H", "content-type: application/json"])
    #expect(request.headers.values(of: "Content-Type") == ["application/json"])
  }

  @Test func readsDataFromStandardInputWithoutLineEnds() async throws {
    let request = try await request(["-d", "@-", "-d", "x"], input: "a=1\r\nb\0c\n")
    #expect(try body(of: request) == "a=1bc&x")
  }

  @Test("a file of -d that is larger than the limit is refused, whatever is left out of it")
  func largeFile() async throws {
    let file = try TemporaryDirectory.make("body") + "/large"
    try Data([]).write(to: URL(fileURLWithPath: file))
    // A hole, all of whose NULs would be left out.
    try #require(truncate(file, (256 << 20) + 1) == 0)
    let client = ScriptedClient()
    let run = await Run(["get", "-d", "@\(file)", "https://api.example.com/x"], client: client)
    #expect(run.errors.contains("the body of -d is larger than 256 MiB"))
    #expect(client.requests.isEmpty)
  }

  @Test func setsLimitsAndWishes() async throws {
    let options = try await request([
      "-m", "1.5", "--connect-timeout", "0.25", "-k", "-6", "-4", "--http2", "--http1.1", "--max-redirs", "3",
      "-L", "--no-direct",
    ]).options
    var expected = RequestOptions()
    expected.timeout = .milliseconds(1500)
    expected.connectTimeout = .milliseconds(250)
    expected.verification = .none
    expected.family = .v4
    expected.version = .http1
    expected.maxRedirects = 3
    expected.routing = .dns
    #expect(options == expected)
  }

  @Test func zeroSecondsAreNoLimit() async throws {
    #expect(try await request(["-m", "0"]).options.timeout == nil)
    #expect(try await request(["--max-redirs=0"]).options.maxRedirects == 0)
    #expect(try await request(["--retry=0"]).options.maxAttempts == 1)
    #expect(try await request(["--retry", "4"]).options.maxAttempts == 5)
  }

  @Test(arguments: [
    (["-X", "GE T"], "\"GE T\" is no method; write one as PUT"),
    (["-X", ""], "\"\" is no method; write one as PUT"),
    (["-H", "nonsense"], "-H takes 'NAME: VALUE', and -H number 1 has no colon"),
    (["-H", "a b: c"], "-H: the header name \"a…\" is not a token"),
    (["-H", "a: b\r\nc: d"], "-H: the value of the header a has a line end or a NUL"),
    (["-H", "Accept:"], "-H 'Accept:' has no value; to send it empty, write 'Accept;'"),
    (["-I", "-d", "x"], "-I asks for HEAD, which has no body; leave -I or -d away"),
    (
      ["--dns-servers", "dns.example"],
      "--dns-servers takes addresses with or without a port, as 127.0.0.1:5353,::1,[::1]:5353; not \"dns.example\""
    ),
    (["--json", "-o", "-"], "--json and -o - both want standard output; give one of them up"),
  ])
  func refusesWhatMakesNoSense(arguments: [String], message: String) async {
    let client = ScriptedClient()
    let run = await Run(["get", "http://a.example/"] + arguments, client: client)
    #expect(run.code == 64)
    #expect(run.errors == "netopt: \(message) (see netopt get --help)\n")
    #expect(client.requests.isEmpty)
  }

  @Test func aFileThatCannotBeReadIsInvalidInput() async {
    let run = await Run(["get", "http://a.example/", "-d", "@/nowhere/at all"])
    #expect(run.code == 65)
    #expect(run.errors.hasPrefix("netopt: cannot read /nowhere/at all: No such file or directory"))
  }
}
