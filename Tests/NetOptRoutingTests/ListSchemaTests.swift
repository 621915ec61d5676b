import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptRouting

/// Checks that the published JSON Schema and netopt's own rules accept the same lists. Python's jsonschema
/// applies the schema.
@Suite(.enabled("\(JSONSchema.missing)") { try await JSONSchema.isInstalled() })
struct ListSchemaTests {
  /// Lists that the schema and netopt accept.
  private static let good: [String] = [
    "{\"schema\": 1, \"serial\": 1, \"hosts\": {}}",
    "{\"schema\": 1, \"serial\": 9223372036854775807, \"hosts\": {}, \"note\": [1, {}]}",
    list("\"issued\": \"2026-11-20T00:00:00.5+08:00\", \"expires\": \"2027-11-20t00:00:00z\""),
    list("\"refresh\": {\"url\": \"https://a.example/l\"}"),
    list("\"refresh\": {\"url\": \"HTTPS://a.example/l\", \"every\": \"90s\", \"x\": 1}"),
    host("\"port\": 65535, \"health\": {\"path\": \"/h?x=1\", \"expect\": 599}"),
    endpoint("\"ip\": \"2001:db8::7\", \"region\": \"华北\", \"isp\": \"a b\", \"weight\": 1000"),
    named("A_b-c.EXAMPLE."), named("localhost"), named("1x.example"),
  ]

  /// Lists that the schema and netopt refuse. Each breaks a rule that a schema can state. netopt also has
  /// rules that no schema can state.
  private static let bad: [String] = [
    "[]", "{}", "{\"schema\": 1, \"serial\": 1}", "{\"schema\": 2, \"serial\": 1, \"hosts\": {}}",
    "{\"schema\": \"1\", \"serial\": 1, \"hosts\": {}}", "{\"schema\": 1, \"serial\": 0, \"hosts\": {}}",
    "{\"schema\": 1, \"serial\": 1.5, \"hosts\": {}}", "{\"schema\": 1, \"serial\": 1, \"hosts\": []}",
    "{\"schema\": 1, \"serial\": 9223372036854775808, \"hosts\": {}}",
    list("\"issued\": \"2026-11-20\""), list("\"expires\": 1"), list("\"issued\": null"),
    list("\"refresh\": {}"), list("\"refresh\": {\"url\": \"http://a.example/l\"}"),
    list("\"refresh\": null"),
    list("\"refresh\": {\"url\": \"https://a.example/l\", \"every\": \"1w\"}"),
    list("\"refresh\": {\"url\": \"https://a.example/l\", \"every\": 60}"),
    host("\"port\": 0"), host("\"port\": 65536"), host("\"port\": \"443\""), host("\"health\": {}"),
    host("\"health\": {\"path\": \"x\"}"), host("\"health\": {\"path\": \"/ \"}"),
    host("\"health\": {\"path\": \"/\", \"expect\": 99}"), host("\"endpoints\": []"),
    host("\"endpoints\": {}"), host("\"endpoints\": [1]"), host("\"endpoints\": [{}]"),
    endpoint("\"ip\": \"1.2.3\""), endpoint("\"ip\": \"[::1]\""), endpoint("\"ip\": \"fe80::1%eth0\""),
    endpoint("\"ip\": 1"), endpoint("\"ip\": \"192.0.2.1\", \"weight\": 0"),
    endpoint("\"ip\": \"192.0.2.1\", \"weight\": 1001"), endpoint("\"ip\": \"192.0.2.1\", \"region\": \"\""),
    endpoint("\"ip\": \"192.0.2.1\", \"isp\": \"a\\u0007\""),
    endpoint("\"ip\": \"192.0.2.1\", \"isp\": null"),
    named(""), named("*.example"), named("a..b"), named("1.2.3.4"), named("a.1"), named("b\u{fc}cher"),
    named(String(repeating: "a", count: 64)),
  ]

  /// A list without hosts, with these further members.
  private static func list(_ members: String) -> String {
    "{\"schema\": 1, \"serial\": 1, \"hosts\": {}, \(members)}"
  }

  /// A list with one host that has these members. Adds an endpoint when `members` has no `endpoints`.
  private static func host(_ members: String) -> String {
    let endpoints = members.contains("endpoints") ? "" : ", \"endpoints\": [{\"ip\": \"192.0.2.1\"}]"
    return "{\"schema\": 1, \"serial\": 1, \"hosts\": {\"a.example\": {\(members)\(endpoints)}}}"
  }

  /// A list with one endpoint that has these members.
  private static func endpoint(_ members: String) -> String { host("\"endpoints\": [{\(members)}]") }

  /// A list with one host of this name.
  private static func named(_ name: String) -> String {
    "{\"schema\": 1, \"serial\": 1, \"hosts\": {\"\(name)\": {\"endpoints\": [{\"ip\": \"192.0.2.1\"}]}}}"
  }

  @Test("the JSON Schema is valid and accepts iplist.json at the root of the repository")
  func rootList() async throws {
    #expect(try await JSONSchema.faults(of: try RepositoryFile.text("iplist.json"), by: "iplist") == "")
  }

  @Test("the JSON Schema and the program accept the same lists")
  func schemaAndProgramAgree() async throws {
    let verdicts = try await JSONSchema.faults(of: Self.good + Self.bad, by: "iplist").map(\.isEmpty)
    try #require(verdicts.count == Self.good.count + Self.bad.count)
    for (text, verdict) in zip(Self.good + Self.bad, verdicts) {
      let isGood = EndpointList.check(Array(text.utf8), rules: ListRules(now: today)).list != nil
      #expect(isGood == verdict, "\(text)")
    }
    #expect(verdicts.prefix(Self.good.count).allSatisfy { $0 })
    #expect(!verdicts.dropFirst(Self.good.count).contains(true))
  }
}
