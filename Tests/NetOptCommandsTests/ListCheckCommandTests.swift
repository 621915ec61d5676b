import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCommands

@Suite struct ListCheckCommandTests {
  private static let good = #"""
    {"schema":1,"serial":7,"issued":"2026-11-20T00:00:00Z","expires":"2027-11-20T00:00:00Z","hosts":{
      "api.example.com":{"port":443,"endpoints":[{"ip":"203.0.113.7"},{"ip":"2001:db8::7"}]}}}
    """#
  /// A list with two faults: port 0, and an address with three numbers.
  private static let bad = #"""
    {"schema":1,"serial":7,"hosts":{"api.example.com":{"port":0,"endpoints":[{"ip":"203.0.113"}]}}}
    """#
  /// A list that is valid only if private addresses are allowed.
  private static let loopback = #"""
    {"schema":1,"serial":7,"hosts":{"api.example.com":{"port":443,"endpoints":[{"ip":"127.0.0.1"}]}}}
    """#

  /// Runs `iplist check` with the list as standard input.
  private func check(_ list: String, _ options: [String] = []) async -> Run {
    await Run(["iplist", "check", "-"] + options, input: list)
  }

  @Test("iplist check prints one line about a valid list")
  func goodList() async {
    let run = await check(Self.good)
    #expect(run.code == 0)
    #expect(
      run.output
        == "standard input: valid, serial 7, 1 host, 2 endpoints, expires 2027-11-20T00:00:00Z\n")
    #expect(run.errors.isEmpty)
  }

  @Test("iplist check prints one line for each fault of a list")
  func faults() async {
    let run = await check(Self.bad)
    #expect(run.code == 65)
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.hasPrefix(#"standard input: $.hosts["api.example.com"]."#) })
    #expect(run.errors == "netopt: standard input has 2 faults; correct the list and check it again\n")
  }

  @Test("iplist check describes the first 100 faults, and counts the others")
  func manyFaults() async {
    let endpoints = (0..<150).map { #"{"ip":"x\#($0)"}"# }.joined(separator: ",")
    let run = await check(
      #"{"schema":1,"serial":7,"hosts":{"api.example.com":{"port":443,"endpoints":[\#(endpoints)]}}}"#)
    #expect(run.code == 65)
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 101 && lines.last?.contains("and 50 more faults") == true)
    #expect(
      run.errors == "netopt: standard input has more than 100 faults; correct the list and check it again\n")
  }

  @Test("iplist check refuses private addresses unless --allow-private is given")
  func privateAddresses() async {
    #expect(await check(Self.loopback).code == 65)
    let run = await check(Self.loopback, ["--allow-private"])
    #expect(run.code == 0)
    #expect(run.output == "standard input: valid, serial 7, 1 host, 1 endpoint, does not expire\n")
  }

  @Test("iplist check refuses an expired list")
  func expiredList() async {
    let run = await check(#"{"schema":1,"serial":7,"expires":"2026-11-20T23:59:59Z","hosts":{}}"#)
    #expect(run.code == 65)
    #expect(run.output.contains("$.expires"))
  }

  @Test("the JSON of iplist check describes the list or its faults")
  func json() async throws {
    let good = await check(Self.good, ["--json"])
    #expect(good.code == 0)
    #expect(
      good.output
        == #"{"schema_version":1,"file":"-","valid":true,"list":{"serial":7,"issued":"2026-11-20T00:00:00Z","#
        + #""expires":"2027-11-20T00:00:00Z","hosts":1,"endpoints":2},"faults":[]}"# + "\n")
    let bad = await check(Self.bad, ["--json"])
    #expect(bad.code == 65)
    #expect(
      bad.output.hasPrefix(
        #"{"schema_version":1,"file":"-","valid":false,"list":null,"faults":[{"path":"$.hosts"#))
  }

  @Test("iplist check reports an unreadable file in text and JSON with exit code 65")
  func unreadableFile() async {
    let run = await Run(["iplist", "check", "--json", "/nowhere/list.json"])
    #expect(run.code == 65)
    #expect(run.errors.hasPrefix("netopt: cannot read /nowhere/list.json: No such file or directory"))
    #expect(
      run.output
        == #"{"schema_version":1,"file":"/nowhere/list.json","valid":false,"list":null,"faults":[],"#
        + #""error":{"code":"unreadable-file","phase":"list","#
        + #""message":"cannot read /nowhere/list.json: No such file or directory"}}"# + "\n")
  }

  @Test("iplist check refuses an endless file")
  func endlessFile() async {
    let run = await Run(["iplist", "check", "/dev/zero"])
    #expect(run.code == 65)
    #expect(run.output.hasPrefix("/dev/zero: $: "))
  }

  @Test(
    "the JSON of iplist check matches its schema",
    .enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
  func schema() async throws {
    let runs = [
      await check(Self.good, ["--json"]), await check(Self.bad, ["--json"]),
      await check(Self.loopback, ["--json", "--allow-private"]),
      await Run(["iplist", "check", "--json", "/nowhere/list.json"]),
    ]
    for run in runs {
      #expect(try await JSONSchema.faults(of: run.output, by: "iplist-check") == "")
    }
  }
}
