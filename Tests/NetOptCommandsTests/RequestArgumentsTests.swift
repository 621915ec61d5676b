import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting
import TestTools
import Testing

@testable import NetOptCommands

/// Tests of the request that `get` builds from its options, as the client receives it.
@Suite struct RequestArgumentsTests {
  /// Runs `get` with these arguments and returns the request that the client received.
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

  /// Returns the body of a request as text; "none" for a request without a body.
  private func body(of request: NetOptRequest) throws -> String {
    switch request.body.source {
    case .none: return "none"
    case .bytes(let bytes): return String(decoding: bytes, as: UTF8.self)
    case .stream: throw UsageError("a stream was not expected")
    }
  }

  @Test("get without options sends a GET request with the default options of the library")
  func defaults() async throws {
    let request = try await request([])
    #expect(request.method == .get)
    #expect(request.url.description == "https://api.example.com/x")
    #expect(request.headers.isEmpty)
    #expect(try body(of: request) == "none")
    #expect(request.options == RequestOptions())
  }

  @Test(
    "-X sets the method, -I selects HEAD and -d selects POST",
    arguments: [
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

  @Test("several -d options form one body, joined by &, with the content type of a form")
  func formData() async throws {
    let request = try await request(["-d", "a=1\n", "--data", "b=2"])
    #expect(try body(of: request) == "a=1\n&b=2")
    #expect(request.headers["Content-Type"] == "application/x-www-form-urlencoded")
  }

  @Test("-d keeps a content type that -H sets")
  func givenContentType() async throws {
    let request = try await request(["-d", "{}", "-H", "content-type: application/json"])
    #expect(request.headers.values(of: "Content-Type") == ["application/json"])
  }

  @Test("-d @- reads standard input and drops line ends and NUL bytes")
  func dataFromStandardInput() async throws {
    let request = try await request(["-d", "@-", "-d", "x"], input: "a=1\r\nb\0c\n")
    #expect(try body(of: request) == "a=1bc&x")
  }

  @Test("get refuses a -d file above the limit of 256 MiB, even if all its bytes would be left out")
  func largeFile() async throws {
    let file = try TemporaryDirectory.make("body") + "/large"
    try Data([]).write(to: URL(fileURLWithPath: file))
    // The file is one hole (a sparse file), and `-d` would leave out all its NUL bytes.
    try #require(truncate(file, (256 << 20) + 1) == 0)
    let client = ScriptedClient()
    let run = await Run(["get", "-d", "@\(file)", "https://api.example.com/x"], client: client)
    #expect(run.errors.contains("the body of -d is larger than 256 MiB"))
    #expect(client.requests.isEmpty)
  }

  @Test("options set the limits, the verification, the address family, the version and the routing")
  func options() async throws {
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

  @Test("-m 0 means no time limit, --max-redirs=0 no redirects, and --retry N means N + 1 attempts")
  func zeroAndRetries() async throws {
    #expect(try await request(["-m", "0"]).options.timeout == nil)
    #expect(try await request(["--max-redirs=0"]).options.maxRedirects == 0)
    #expect(try await request(["--retry=0"]).options.maxAttempts == 1)
    #expect(try await request(["--retry", "4"]).options.maxAttempts == 5)
  }

  @Test(
    "get refuses an invalid option with exit code 64 and sends no request",
    arguments: [
      (["-X", "GE T"], "\"GE T\" is not a method; use for example PUT"),
      (["-X", ""], "\"\" is not a method; use for example PUT"),
      (["-H", "nonsense"], "-H number 1 has no colon; write -H 'NAME: VALUE'"),
      (["-H", "a b: c"], "-H: the header name \"a…\" is not a token"),
      (["-H", "a: b\r\nc: d"], "-H: the value of the header a has a line end or a NUL"),
      (["-H", "Accept:"], "-H 'Accept:' has no value; to send an empty value, write 'Accept;'"),
      (["-I", "-d", "x"], "-I sends HEAD, which has no body; remove -I or -d"),
      (
        ["--dns-servers", "dns.example"],
        "--dns-servers takes addresses with or without a port, as 127.0.0.1:5353,::1,[::1]:5353; not \"dns.example\""
      ),
      (["--json", "-o", "-"], "--json and -o - both write to standard output; remove one of them"),
    ])
  func usageErrors(arguments: [String], message: String) async {
    let client = ScriptedClient()
    let run = await Run(["get", "http://a.example/"] + arguments, client: client)
    #expect(run.code == 64)
    #expect(run.errors == "netopt: \(message) (see netopt get --help)\n")
    #expect(client.requests.isEmpty)
  }

  @Test("get refuses an unreadable -d file with exit code 65")
  func unreadableFile() async {
    let run = await Run(["get", "http://a.example/", "-d", "@/nowhere/at all"])
    #expect(run.code == 65)
    #expect(run.errors.hasPrefix("netopt: cannot read /nowhere/at all: No such file or directory"))
  }
}
