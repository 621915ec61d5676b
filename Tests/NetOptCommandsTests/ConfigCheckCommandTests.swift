import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct ConfigCheckCommandTests {
  private static let good =
    #"{"schema_version":1,"dns":{"timeout_ms":250,"tries":2},"proxy":"none","routing":{"region":"eu-north"}}"#
  private static let bad = #"{"schema_version":1,"dns":{"tries":11},"proxi":"none"}"#

  /// Runs `config check` with the configuration as standard input.
  private func check(
    _ configuration: String, _ options: [String] = [], environment: [String: String] = [:]
  ) async -> Run {
    await Run(["config", "check", "-"] + options, environment: environment, input: configuration)
  }

  @Test("config check prints the settings that differ from their defaults")
  func goodFile() async {
    let run = await check(Self.good, environment: ["NETOPT_REGION": "us-east"])
    #expect(run.code == 0)
    #expect(
      run.output == """
        standard input: valid; these settings differ from their defaults:
          $.dns.timeout_ms  250
          $.proxy           "none"
          $.routing.region  "us-east" (from NETOPT_REGION)

        """)
    #expect(run.errors.isEmpty)
    let empty = await check(#"{"schema_version":1}"#)
    #expect(empty.code == 0)
    #expect(empty.output == "standard input: valid; all settings have their defaults\n")
  }

  @Test("config check prints one line for each fault, and exits with code 1")
  func faults() async {
    let run = await check(Self.bad)
    #expect(run.code == 1)
    #expect(
      run.output == """
        standard input: $.dns.tries: is 11; allowed: 1 to 10
        standard input: $.proxi: is not a setting; did you mean proxy?

        """)
    #expect(run.errors == "netopt: standard input has 2 faults; correct the file and check it again\n")
  }

  @Test(
    "the fault of a file that a variable names has the variable's name",
    arguments: ["NETOPT_CACERT", "NETOPT_IPLIST"])
  func faultOfVariable(_ variable: String) async {
    let run = await check(#"{"schema_version":1}"#, environment: [variable: "/missing/file"])
    #expect(run.code == 1)
    #expect(run.output.hasPrefix("standard input: \(variable): ") && run.output.contains("/missing/file"))
  }

  @Test("config check counts the faults that it does not print")
  func manyFaults() async {
    let members = (0..<150).map { "\"x\($0)\":1" }.joined(separator: ",")
    let run = await check("{\"schema_version\":1,\(members)}")
    #expect(run.code == 1)
    #expect(run.output.split(separator: "\n").count == 101)
    #expect(run.output.hasSuffix("standard input: and 50 more faults\n"))
    #expect(run.errors.contains("has 150 faults"))
  }

  @Test("config check reads the files that the configuration names, relative to its folder")
  func files() async throws {
    let directory = try TemporaryDirectory.make("config")
    try Files.write(
      #"{"schema_version":1,"list":{"file":"iplist.json"},"tls":{"ca_file":"none.pem"}}"#,
      to: directory + "/netopt.json")
    var run = await Run(["config", "check", directory + "/netopt.json"])
    #expect(run.code == 1)
    #expect(run.output.contains("$.list: the IP list \(directory)/iplist.json cannot be read"))
    #expect(run.output.contains("$.tls.ca_file: ") && run.output.contains("\(directory)/none.pem"))
    #expect(run.configurations.isEmpty)
    try Files.write(
      #"{"schema_version":1,"list":{"file":"iplist.json"}}"#, to: directory + "/netopt.json")
    try Files.write(
      #"{"schema":1,"serial":7,"hosts":{"a.test":{"endpoints":[{"ip":"203.0.113.7"}]}}}"#,
      to: directory + "/iplist.json")
    run = await Run(["config", "check", directory + "/netopt.json"])
    #expect(run.code == 0)
    #expect(run.output.contains("$.list.file  \"\(directory)/iplist.json\""))
  }

  @Test("config check reports an unreadable file in text and JSON with exit code 65")
  func unreadableFile() async {
    let run = await Run(["config", "check", "--json", "/nowhere/netopt.json"])
    #expect(run.code == 65)
    #expect(run.errors.hasPrefix("netopt: cannot read /nowhere/netopt.json: No such file or directory"))
    #expect(
      run.output.hasPrefix(
        #"{"schema_version":1,"file":"/nowhere/netopt.json","valid":false,"settings":[],"fault_count":0,"faults":[],"error":{"#
      ))
    #expect(await Run(["config", "check", "/dev/zero"]).code == 1)
    #expect(await Run(["config", "check"]).code == 64)
  }

  @Test("config check prints no secret")
  func secrets() async {
    let run = await check(
      #"{"schema_version":1,"proxy_env":"MY_PROXY","authorization":["#
        + #"{"hosts":["a.test"],"basic":{"user":"app","password_env":"MY_PASSWORD"}},"#
        + #"{"hosts":["b.test"],"bearer_env":"MY_TOKEN"}]}"#, ["--json"],
      environment: [
        "MY_PROXY": "http://user:hunter2@proxy.test", "MY_PASSWORD": "hunter2", "MY_TOKEN": "hunter2",
      ])
    #expect(run.code == 0)
    for (path, variable) in [
      ("proxy_env", "MY_PROXY"), ("authorization[0].basic.password_env", "MY_PASSWORD"),
      ("authorization[1].bearer_env", "MY_TOKEN"),
    ] {
      #expect(run.output.contains(#"{"path":"$.\#(path)","value":"\#(variable)","variable":null}"#))
    }
    #expect(!run.output.contains("hunter2"))
  }

  @Test(
    "the JSON of config check matches its schema",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schema() async throws {
    let runs = [
      await check(Self.good, ["--json"], environment: ["NETOPT_REGION": "us-east"]),
      await check(Self.bad, ["--json"]), await check("{", ["--json"]),
      await Run(["config", "check", "--json", "/nowhere/netopt.json"]),
    ]
    #expect(
      runs[1].output
        == #"{"schema_version":1,"file":"-","valid":false,"settings":[],"fault_count":2,"faults":["#
        + #"{"path":"$.dns.tries","message":"is 11; allowed: 1 to 10"},"#
        + #"{"path":"$.proxi","message":"is not a setting; did you mean proxy?"}]}"# + "\n")
    for run in runs {
      #expect(try await JSONSchema.faults(of: run.output, by: "config-check") == "")
    }
  }
}
