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

  @Test func aStatusIsNoFailure() async {
    let client = ScriptedClient { (request) throws(NetOptError) in
      Samples.response(to: request, status: 404, body: ["not here"])
    }
    let run = await Run(["get", url], client: client)
    #expect(run.code == 0)
    #expect(run.output == "not here")
  }

  @Test func headPrintsTheHead() async {
    let run = await Run(["get", "-I", url])
    #expect(run.code == 0)
    #expect(run.output == "HTTP/2 200\ncontent-type: text/plain\nset-cookie: a=1\nset-cookie: b=\"2\"\n\n")
  }

  @Test func jsonTakesTheBodysPlace() async {
    let run = await Run(["get", "--json", url])
    #expect(run.code == 0)
    #expect(run.output.hasPrefix(#"{"schema_version":1,"url":"https://api.example.com/","status":200,"#))
    #expect(run.output.hasSuffix(",\"body_bytes\":6}\n"))
    #expect(run.output.split(separator: "\n").count == 1)
  }

  @Test func jsonAndTheBodyGoTogetherWithAFile() async throws {
    let directory = try TemporaryDirectory.make("get")
    let run = await Run(["get", "--json", "-o", directory + "/body", url])
    #expect(run.code == 0)
    #expect(run.output.hasSuffix(",\"body_bytes\":6}\n"))
    #expect(try Files.read(directory + "/body") == "hello\n")
    #expect(try Files.names(in: directory) == ["body"])
  }

  @Test func aDashIsStandardOutput() async {
    #expect(await Run(["get", "-o-", url]).output == "hello\n")
  }

  @Test func verboseDrawsOnStandardError() async {
    let run = await Run(["get", "-v", url])
    #expect(run.output == "hello\n")
    #expect(run.errors.hasPrefix("netopt get  https://api.example.com/"))
    #expect(run.errors.split(separator: "\n").allSatisfy { $0.count <= 80 })

    let wide = await Run(["get", "-v", url], columns: 120)
    #expect(wide.errors.split(separator: "\n").contains { $0.count == 120 })
    let stated = await Run(["get", "-v", url], environment: ["COLUMNS": "100"])
    #expect(stated.errors.split(separator: "\n").contains { $0.count == 100 })
  }

  @Test func anErrorIsReportedWithItsRoute() async {
    let client = ScriptedClient { (_) throws(NetOptError) in throw Samples.error }
    let run = await Run(["get", "-v", "--json", url], client: client)
    #expect(run.code == 1)
    #expect(run.output == Exchange.failure(url: url, Samples.error).description + "\n")
    #expect(run.errors.contains("FAILED"))
    #expect(run.errors.hasSuffix("netopt: nobody answered for api.example.com; check the network\n"))
    #expect(client.isShutDown)
  }

  @Test func anErrorInTheBodyIsReportedWithTheResponsesRoute() async throws {
    let end = NetOptError(.receiveFailed, phase: .receive, "the connection broke; try again")
    let client = ScriptedClient { (request) throws(NetOptError) in Samples.response(to: request, end: end) }
    let run = await Run(["get", "--json", url], client: client)
    #expect(run.code == 1)
    #expect(run.output == Exchange.failure(url: url, end.with(route: Samples.direct)).description + "\n")
    #expect(run.errors == "netopt: the connection broke; try again\n")
  }

  @Test func aFailureLeavesTheFileAlone() async throws {
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

  @Test func aFileThatCannotBeWrittenKeepsTheRequestFromBeingSent() async {
    let client = ScriptedClient()
    let run = await Run(["get", "-o", "/nowhere/at/all", url], client: client)
    #expect(run.code == 1)
    #expect(
      run.errors
        == "netopt: cannot write to /nowhere/at/all: No such file or directory; make the folder first\n")
    #expect(client.requests.isEmpty)
  }

  @Test func aFullDeviceIsAnError() async {
    let client = ScriptedClient()
    let run = await Run(["get", "-o", "/dev/full", url], client: client)
    #expect(run.code == 1)
    #expect(run.errors.hasPrefix("netopt: cannot write to /dev/full: No space left on device"))
    #expect(client.isShutDown)
  }

  @Test func aReaderThatWentAwayEndsItQuietly() async {
    let closed = MemoryOutput(failure: OutputError(kind: .closed, target: "standard output"))
    let client = ScriptedClient()
    let run = await Run(["get", url], client: client, output: closed)
    #expect(run.code == 141)
    #expect(run.errors.isEmpty)
    #expect(client.isShutDown)
  }

  @Test func aURLThatIsNoneIsAUsageError() async {
    let run = await Run(["get", "--json", "ftp://a.example/"])
    #expect(run.code == 64)
    #expect(run.output.contains(#""error":{"code":"invalid-url","phase":"resolve","#))
    #expect(run.errors.hasPrefix("netopt: \"ftp://a.example/\" is not a usable URL"))
  }

  @Test func theClientsWarningIsPassedOn() async {
    let warning = NetOptError(.invalidList, phase: .list, "l.json has expired; ask for a new one")
    let run = await Run(["get", url], client: ScriptedClient(warning: warning))
    #expect(run.code == 0)
    #expect(run.errors == "netopt: warning: l.json has expired; ask for a new one\n")
  }
}
