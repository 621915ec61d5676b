import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct GetCommandTests {
  private let url = "https://api.example.com/"

  @Test func writesTheBodyToStandardOutput() async {
    let client = ScriptedClient()
    let run = await Run(["get", url], client: client)
    #expect(run.code == 0)
    #expect(run.output == "hello\n")
    #expect(run.errors.isEmpty)
    #expect(client.isShutDown)
  }

  @Test("get prints the body of a 404 response and exits with code 0")
  func status404() async {
    let client = ScriptedClient { (request) throws(NetOptError) in
      Samples.response(to: request, status: 404, body: ["not here"])
    }
    let run = await Run(["get", url], client: client)
    #expect(run.code == 0)
    #expect(run.output == "not here")
  }

  @Test("get -I prints the status line and the header fields")
  func head() async {
    let run = await Run(["get", "-I", url])
    #expect(run.code == 0)
    #expect(run.output == "HTTP/2 200\ncontent-type: text/plain\nset-cookie: a=1\nset-cookie: b=\"2\"\n\n")
  }

  @Test("get --json prints one line of JSON instead of the body")
  func json() async {
    let run = await Run(["get", "--json", url])
    #expect(run.code == 0)
    #expect(run.output.hasPrefix(#"{"schema_version":1,"url":"https://api.example.com/","status":200,"#))
    #expect(run.output.hasSuffix(",\"body_bytes\":6}\n"))
    #expect(run.output.split(separator: "\n").count == 1)
  }

  @Test("get --json -o writes the body to the file and the JSON to standard output")
  func jsonAndFile() async throws {
    let directory = try TemporaryDirectory.make("get")
    let run = await Run(["get", "--json", "-o", directory + "/body", url])
    #expect(run.code == 0)
    #expect(run.output.hasSuffix(",\"body_bytes\":6}\n"))
    #expect(try Files.read(directory + "/body") == "hello\n")
    #expect(try Files.names(in: directory) == ["body"])
  }

  @Test("get -o- prints the body on standard output")
  func dash() async {
    #expect(await Run(["get", "-o-", url]).output == "hello\n")
  }

  @Test("get -v draws the waterfall on standard error in the width of the terminal or COLUMNS")
  func verbose() async {
    let run = await Run(["get", "-v", url])
    #expect(run.output == "hello\n")
    #expect(run.errors.hasPrefix("netopt get  https://api.example.com/"))
    #expect(run.errors.split(separator: "\n").allSatisfy { $0.count <= 80 })

    let wide = await Run(["get", "-v", url], columns: 120)
    #expect(wide.errors.split(separator: "\n").contains { $0.count == 120 })
    let stated = await Run(["get", "-v", url], environment: ["COLUMNS": "100"])
    #expect(stated.errors.split(separator: "\n").contains { $0.count == 100 })
  }

  @Test("get -v --json reports a failed request with its route")
  func failedRequest() async {
    let client = ScriptedClient { (_) throws(NetOptError) in throw Samples.error }
    let run = await Run(["get", "-v", "--json", url], client: client)
    #expect(run.code == 1)
    #expect(run.output == FinishedExchange.failure(url: url, Samples.error).description + "\n")
    #expect(run.errors.contains("FAILED"))
    #expect(run.errors.hasSuffix("netopt: nobody answered for api.example.com; check the network\n"))
    #expect(client.isShutDown)
  }

  @Test("get --json reports a failure in the body with the route of the response")
  func failedBody() async throws {
    let end = NetOptError(.receiveFailed, phase: .receive, "the connection broke; try again")
    let client = ScriptedClient { (request) throws(NetOptError) in Samples.response(to: request, end: end) }
    let run = await Run(["get", "--json", url], client: client)
    #expect(run.code == 1)
    let failure = FinishedExchange.failure(url: url, end.with(route: Samples.direct))
    #expect(run.output == failure.description + "\n")
    #expect(run.errors == "netopt: the connection broke; try again\n")
  }

  @Test("get -o keeps the old file when the body fails")
  func failureKeepsFile() async throws {
    let directory = try TemporaryDirectory.make("get")
    let file = directory + "/body"
    try Files.write("precious", to: file)
    let end = NetOptError(.receiveFailed, phase: .receive, "the connection broke; try again")
    let client = ScriptedClient { (request) throws(NetOptError) in Samples.response(to: request, end: end) }
    let run = await Run(["get", "-o", file, url], client: client)
    #expect(run.code == 1)
    #expect(try Files.read(file) == "precious")
    #expect(try Files.names(in: directory) == ["body"])
  }

  @Test("get sends no request if it cannot write the output file")
  func unwritableFile() async {
    let client = ScriptedClient()
    let run = await Run(["get", "-o", "/nowhere/at/all", url], client: client)
    #expect(run.code == 1)
    #expect(
      run.errors
        == "netopt: cannot write to /nowhere/at/all: No such file or directory; create the directory first\n")
    #expect(client.requests.isEmpty)
  }

  @Test("get reports a full device with exit code 1")
  func fullDevice() async {
    let client = ScriptedClient()
    let run = await Run(["get", "-o", "/dev/full", url], client: client)
    #expect(run.code == 1)
    #expect(run.errors.hasPrefix("netopt: cannot write to /dev/full: No space left on device"))
    #expect(client.isShutDown)
  }

  @Test("get exits with code 141 and no message when the reader of its output is gone")
  func closedReader() async {
    let closed = MemoryOutput(failure: OutputError(kind: .closed, target: "standard output"))
    let client = ScriptedClient()
    let run = await Run(["get", url], client: client, output: closed)
    #expect(run.code == 141)
    #expect(run.errors.isEmpty)
    #expect(client.isShutDown)
  }

  @Test("get refuses a URL that is neither http nor https with exit code 64")
  func invalidURL() async {
    let run = await Run(["get", "--json", "ftp://a.example/"])
    #expect(run.code == 64)
    #expect(run.output.contains(#""error":{"code":"invalid-url","phase":"resolve","#))
    #expect(run.errors.hasPrefix("netopt: \"ftp://a.example/\" is not a usable URL"))
  }

  @Test("get prints the warning of the client about the list")
  func clientWarning() async {
    let warning = NetOptError(.invalidList, phase: .list, "l.json has expired; ask for a new one")
    let run = await Run(["get", url], client: ScriptedClient(warning: warning))
    #expect(run.code == 0)
    #expect(run.errors == "netopt: warning: l.json has expired; ask for a new one\n")
  }
}
