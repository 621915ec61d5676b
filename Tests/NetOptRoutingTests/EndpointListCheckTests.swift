import Foundation
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptRouting

/// Tests the check of an endpoint list: which faults it finds, and how it describes them.
@Suite struct EndpointListCheckTests {
  /// The descriptions of the faults in a list. Also checks that the result has no list exactly when there are
  /// faults.
  private func faults(_ bytes: [UInt8]) -> [String] {
    let (list, faults) = EndpointList.check(bytes, rules: ListRules(now: today))
    #expect((list == nil) == !faults.isEmpty)
    return faults.map(\.description)
  }

  /// A list or a part of it, and the expected faults: the path of each fault, and a part of its message.
  struct Case: Sendable, CustomTestStringConvertible {
    let text: String
    let faults: [(path: String, part: String)]
    var testDescription: String { text }

    init(_ text: String, _ faults: (String, String)...) {
      self.text = text
      self.faults = faults.map { ($0.0, $0.1) }
    }
  }

  /// Checks that a list has exactly the expected faults, in this order.
  private func expect(_ bytes: [UInt8], _ expected: [(path: String, part: String)]) {
    let (list, faults) = EndpointList.check(bytes, rules: ListRules(now: today))
    #expect(list == nil)
    #expect(faults.map(\.path) == expected.map(\.path))
    for (fault, expected) in zip(faults, expected) {
      #expect(fault.message.contains(expected.part), "\(fault)")
    }
  }

  @Test(
    "the check reports faults of the list's top-level members",
    arguments: [
      Case("[]", ("$", "must be a JSON object")),
      Case("null", ("$", "must be a JSON object")),
      Case("\"list\"", ("$", "must be a JSON object")),
      Case("{\"schema\": 1", ("$.schema", "not JSON: line 1, column 13: the text ends early")),
      Case("", ("$", "not JSON")),
      Case("{\"schema\": 2, \"serial\": -1}", ("$.schema", "is 2, but this program reads version 1")),
      Case(
        "{}", ("$.schema", "is missing; write \"schema\": 1"), ("$.serial", "positive integer"),
        ("$.hosts", "must be an object")),
      Case(
        "{\"schema\": \"1\", \"serial\": \"1\", \"issued\": 1, \"expires\": null, \"refresh\": [], \"hosts\": []}",
        ("$.schema", "must be the number 1"), ("$.serial", "positive integer"), ("$.issued", "RFC 3339"),
        ("$.expires", "RFC 3339"), ("$.refresh", "object with url and every"), ("$.hosts", "an object")),
      Case("{\"schema\": 1, \"serial\": 0, \"hosts\": {}}", ("$.serial", "positive integer")),
      Case("{\"schema\": 1, \"serial\": 1.5, \"hosts\": {}}", ("$.serial", "positive integer")),
      Case("{\"schema\": 1, \"serial\": 9223372036854775808, \"hosts\": {}}", ("$.serial", "positive")),
      Case("{\"schema\": 1, \"serial\": 1, \"serial\": 2, \"hosts\": {}}", ("$.serial", "more than once")),
    ])
  func checksTopLevel(_ one: Case) {
    expect(Array(one.text.utf8), one.faults)
  }

  @Test(arguments: [
    Case("\"issued\": \"yesterday\"", ("$.issued", "\"yesterday\" is not a time; it must be an RFC 3339")),
    Case("\"expires\": \"2027-02-30T00:00:00Z\"", ("$.expires", "RFC 3339")),
    Case("\"expires\": \"2026-11-20T23:59:59Z\"", ("$.expires", "the list expired at 2026-11-20T23:59:59Z")),
    Case("\"expires\": \"2026-11-21T00:00:00Z\"", ("$.expires", "expired")),
    Case(
      "\"issued\": \"2027-01-01T00:00:00Z\", \"expires\": \"2027-01-01T00:00:00Z\"",
      ("$.expires", "must be later than issued")),
    Case("\"refresh\": {}", ("$.refresh.url", "is missing")),
    Case("\"refresh\": {\"url\": 1}", ("$.refresh.url", "https URL in quotes")),
    Case("\"refresh\": {\"url\": \"http://a.example/\"}", ("$.refresh.url", "not http")),
    Case("\"refresh\": {\"url\": \"a.example\"}", ("$.refresh.url", "it has no scheme")),
    Case("\"refresh\": {\"url\": \"https://127.0.0.1/\"}", ("$.refresh.url", "leads to 127.0.0.1")),
    Case("\"refresh\": {\"url\": \"https://a.localhost/\"}", ("$.refresh.url", "leads to a.localhost")),
    Case("\"refresh\": {\"url\": \"https://[fd00::1]:8443/\"}", ("$.refresh.url", "leads to")),
    Case("\"refresh\": {\"url\": \"https://a b/\"}", ("$.refresh.url", "it has a space")),
  ])
  func checksValidityAndRefresh(_ one: Case) {
    expect(listBytes(one.text + ", \"hosts\": {}"), one.faults)
  }

  @Test(arguments: [
    "", "s", "10", "1.5h", "-1h", "+90s", "90 s", "24H", "59s", "366d", "99999999999999999999d", "9999999d",
    "h24",
  ])
  func checksIntervals(_ every: String) {
    let refresh = "\"refresh\": {\"url\": \"https://a.example/\", \"every\": \"\(every)\"}"
    expect(listBytes(refresh + ", \"hosts\": {}"), [("$.refresh.every", "from \"60s\" to \"365d\"")])
  }

  @Test(arguments: [
    Case("{\"a.example\": 1}", ("$.hosts[\"a.example\"]", "must be an object with endpoints")),
    Case("{\"a.example\": {}}", ("$.hosts[\"a.example\"].endpoints", "at least one endpoint")),
    Case("{\"a.example\": {\"endpoints\": []}}", ("$.hosts[\"a.example\"].endpoints", "at least one")),
    Case("{\"a.example\": {\"endpoints\": {}}}", ("$.hosts[\"a.example\"].endpoints", "must be an array")),
    Case("{\"\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}}", ("$.hosts[\"\"]", "has no host")),
    Case("{\"*.a\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}}", ("$.hosts[\"*.a\"]", "names cannot have")),
    Case("{\"bücher\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}}", ("$.hosts[\"bücher\"]", "xn--")),
    Case("{\"a:443\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}}", ("$.hosts[\"a:443\"]", "cannot have")),
    Case(
      "{\"1.1.1.1\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}}",
      ("$.hosts[\"1.1.1.1\"]", "a host must be a name")),
    Case("{\"a.1\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}}", ("$.hosts[\"a.1\"]", "not an IPv4 address")),
    Case(
      "{\"A.b\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}, \"a.B.\": {\"endpoints\": [{\"ip\": \"x\"}]}}",
      ("$.hosts[\"a.B.\"]", "the host a.b is in the list more than once"),
      ("$.hosts[\"a.B.\"].endpoints[0].ip", "not an IP address")),
    Case(
      "{\"a.b\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}, \"a.b\": {\"endpoints\": [{\"ip\": \"1.1.1.1\"}]}}",
      ("$.hosts[\"a.b\"]", "this key appears more than once")),
  ])
  func checksHosts(_ one: Case) {
    expect(listBytes("\"hosts\": " + one.text), one.faults)
  }

  @Test(arguments: [
    // A member of a host, the path of the fault in the host, and a part of the message.
    ("\"port\": 0", "port", "from 1 to 65535"), ("\"port\": 65536", "port", "from 1 to 65535"),
    ("\"port\": \"443\"", "port", "integer"), ("\"port\": 443.5", "port", "integer"),
    ("\"port\": null", "port", "integer"), ("\"health\": \"/\"", "health", "object with path"),
    ("\"health\": {}", "health.path", "begins with /"),
    ("\"health\": {\"path\": \"healthz\"}", "health.path", "begins with /"),
    ("\"health\": {\"path\": \"/a b\"}", "health.path", "percent-encoded"),
    ("\"health\": {\"path\": \"/\\r\\nx\"}", "health.path", "percent-encoded"),
    ("\"health\": {\"path\": \"/\", \"expect\": 99}", "health.expect", "from 100 to 599"),
    ("\"health\": {\"path\": \"/\", \"expect\": 600}", "health.expect", "from 100 to 599"),
    ("\"health\": {\"path\": \"/\", \"expect\": \"200\"}", "health.expect", "from 100 to 599"),
  ])
  func checksMembersOfAHost(_ member: String, _ path: String, _ part: String) {
    let host = "{\(member), \"endpoints\": [{\"ip\": \"192.0.2.1\"}]}"
    expect(listBytes("\"hosts\": {\"a.b\": \(host)}"), [("$.hosts[\"a.b\"].\(path)", part)])
  }

  @Test(arguments: [
    // An endpoint, the path of the fault in the endpoint, and a part of the message.
    ("1", "", "must be an object"), ("null", "", "must be an object"), ("[]", "", "must be an object"),
    ("{}", ".ip", "is missing"), ("{\"ip\": 1}", ".ip", "IP address in quotes"),
    ("{\"ip\": \"\"}", ".ip", "not an IP address"), ("{\"ip\": \"1.2.3\"}", ".ip", "not an IP address"),
    ("{\"ip\": \"1.2.3.256\"}", ".ip", "\"1.2.3.256\" is not an IP address"),
    ("{\"ip\": \"01.2.3.4\"}", ".ip", "not an IP address"),
    ("{\"ip\": \"1.2.3.4:80\"}", ".ip", "without a port"),
    ("{\"ip\": \"[::2]\"}", ".ip", "not an IP address"), ("{\"ip\": \"fe80::1%eth0\"}", ".ip", "not an IP"),
    ("{\"ip\": \"1.2.3.4\\u0000\"}", ".ip", "not an IP address"),
    ("{\"ip\": \" 1.2.3.4\"}", ".ip", "not an IP"),
    ("{\"ip\": \"a.example\"}", ".ip", "not an IP address"),
    ("{\"ip\": \"10.1.2.3\"}", ".ip", "10.1.2.3 is a private address"),
    ("{\"ip\": \"100.64.0.1\"}", ".ip", "private"), ("{\"ip\": \"fc00::1\"}", ".ip", "private"),
    ("{\"ip\": \"127.0.0.1\"}", ".ip", "loopback"), ("{\"ip\": \"::1\"}", ".ip", "loopback"),
    ("{\"ip\": \"::ffff:127.0.0.1\"}", ".ip", "loopback"), ("{\"ip\": \"169.254.1.1\"}", ".ip", "link-local"),
    ("{\"ip\": \"fe80::1\"}", ".ip", "link-local"), ("{\"ip\": \"224.0.0.1\"}", ".ip", "multicast"),
    ("{\"ip\": \"ff02::1\"}", ".ip", "multicast"), ("{\"ip\": \"0.0.0.0\"}", ".ip", "unspecified"),
    ("{\"ip\": \"::\"}", ".ip", "unspecified"), ("{\"ip\": \"255.255.255.255\"}", ".ip", "reserved"),
    ("{\"ip\": \"192.0.2.9\", \"weight\": 0}", ".weight", "from 1 to 1000"),
    ("{\"ip\": \"192.0.2.9\", \"weight\": 1001}", ".weight", "from 1 to 1000"),
    ("{\"ip\": \"192.0.2.9\", \"weight\": \"5\"}", ".weight", "integer"),
    ("{\"ip\": \"192.0.2.9\", \"weight\": true}", ".weight", "integer"),
    ("{\"ip\": \"192.0.2.9\", \"region\": \"\"}", ".region", "name in quotes"),
    ("{\"ip\": \"192.0.2.9\", \"region\": 1}", ".region", "name in quotes"),
    ("{\"ip\": \"192.0.2.9\", \"isp\": \"a\\tb\"}", ".isp", "without control characters"),
    ("{\"ip\": \"192.0.2.9\", \"isp\": \"\\u0085é\"}", ".isp", "without control characters"),
    ("{\"ip\": \"2001:0db8:0::1\"}", ".ip", "2001:db8::1 is also endpoint 0 of this host"),
  ])
  func checksEndpoints(_ endpoint: String, _ path: String, _ part: String) {
    let bytes = listBytes(endpoints: "[{\"ip\": \"2001:db8::1\"}, \(endpoint)]")
    expect(bytes, [("$.hosts[\"a.example\"].endpoints[1]\(path)", part)])
  }

  @Test("one check reports every fault of a list")
  func allFaults() {
    let bytes = listBytes(
      """
      "expires": "2020-01-01T00:00:00Z",
      "refresh": {"url": "http://a.example/", "every": "1s"},
      "hosts": {
        "b.example": {"port": 0, "endpoints": [{"ip": "10.0.0.1", "weight": 0}, 5, {"ip": "?", "isp": ""}]},
        "a.example": {"port": 1, "port": 2, "endpoints": []}
      }
      """)
    #expect(
      EndpointList.check(bytes, rules: ListRules(now: today)).faults.map(\.path) == [
        "$.hosts[\"a.example\"].port", "$.expires", "$.refresh.url", "$.refresh.every",
        "$.hosts[\"a.example\"].endpoints", "$.hosts[\"b.example\"].port",
        "$.hosts[\"b.example\"].endpoints[0].weight", "$.hosts[\"b.example\"].endpoints[0].ip",
        "$.hosts[\"b.example\"].endpoints[1]", "$.hosts[\"b.example\"].endpoints[2].isp",
        "$.hosts[\"b.example\"].endpoints[2].ip",
      ])
  }

  @Test("a check lists 100 faults and counts the others")
  func manyFaults() {
    let endpoints = (0..<150).map { "{\"ip\": \"10.0.0.\($0)\"}" }.joined(separator: ",")
    let faults = EndpointList.check(listBytes(endpoints: "[\(endpoints)]"), rules: ListRules(now: today))
      .faults
    #expect(faults.count == 101)
    #expect(faults[99].path == "$.hosts[\"a.example\"].endpoints[99].ip")
    #expect(faults[100].description == "$: and 50 more faults")
  }

  @Test("a list of more than 1,048,576 bytes is refused")
  func largeList() {
    let bytes = [UInt8](repeating: 0x20, count: EndpointList.maximumBytes - 2) + Array("{}".utf8)
    #expect(faults(bytes).first == "$.schema: is missing; write \"schema\": 1")
    #expect(
      faults(bytes + [0x20])
        == ["$: the list has 1048577 bytes, more than the limit of 1048576; remove unused entries"])
  }

  @Test("a list that is not UTF-8 is refused, and a byte order mark is accepted")
  func encodings() {
    #expect(faults([0x7b, 0x22, 0xff]) == ["$: byte 2 is not UTF-8 text; save the list as UTF-8"])
    #expect(faults(Array("{}\u{0}".utf8)) == ["$: byte 2 is not UTF-8 text; save the list as UTF-8"])
    let text = "{\"schema\": 1, \"serial\": 1, \"hosts\": {}}"
    #expect(
      faults(text.utf16.flatMap { [UInt8($0), 0] }) == ["$: byte 1 is not UTF-8 text; save the list as UTF-8"]
    )
    #expect(faults([0xef, 0xbb, 0xbf] + Array(text.utf8)) == [])
  }

  @Test("the error of an invalid list names the file, the place and the rule")
  func errorOfInvalidList() {
    let rules = ListRules(now: today)
    func message(_ endpoints: String) -> String? {
      do throws(NetOptError) {
        _ = try EndpointList(listBytes(endpoints: endpoints), file: "/etc/iplist.json", rules: rules)
        return nil
      } catch {
        #expect(error.code == .invalidList)
        #expect(error.phase == .list)
        return error.message
      }
    }
    let first =
      "/etc/iplist.json: $.hosts[\"a.example\"].endpoints[0].ip: \"x\" is not an IP address; write it like "
      + "192.0.2.1 or 2001:db8::1, without a port"
    #expect(message("[{\"ip\": \"x\"}]") == first)
    #expect(message("[{\"ip\": \"x\"}, {}]") == first + " (and 1 more fault)")
    #expect(message("[{\"ip\": \"x\"}, {}, {}]") == first + " (and 2 more faults)")
    #expect(message("[{\"ip\": \"192.0.2.1\"}]") == nil)
  }

  @Test("the message of a fault is short and has no control characters")
  func messagesForTerminals() {
    let ugly = "\\u001b[31m\\u202e" + String(repeating: "x", count: 5000)
    let fault = faults(listBytes(endpoints: "[{\"ip\": \"\(ugly)\"}]")).first ?? ""
    #expect(fault.count < 600)
    #expect(fault.contains("\"��xxx") || fault.contains("\"�[31m�xxx"))
    #expect(!fault.unicodeScalars.contains { $0 == "\u{1b}" || $0 == "\u{202e}" })
  }

  /// The mutations resemble the mistakes of a person who edits the list, and the damage of a broken disk.
  @Test("a mutated list gives a list or faults, and never a crash")
  func mutatedLists() throws {
    let file = try RepositoryFile.bytes("iplist.json")
    var random = SplitMix64(seed: 3)
    // Pieces of JSON that a mutation inserts.
    let pieces = [
      "{", "}", "[", "]", ",", ":", "\"", "\\u0000", "null", "1e999", "-1", "\"ip\"", "\"hosts\":", "é",
      "\u{0}", "\\",
    ].map { Array($0.utf8) }
    // The number of lists with faults.
    var refused = 0
    for _ in 0..<3000 {
      var bytes = Array(file)
      for _ in 0...Int.random(in: 0...2, using: &random) {
        let start = Int.random(in: 0..<bytes.count, using: &random)
        let end = min(bytes.count, start + Int.random(in: 0...8, using: &random))
        switch Int.random(in: 0...3, using: &random) {
        case 0: bytes.removeSubrange(start..<end)
        case 1: bytes[start] = UInt8.random(in: 0...255, using: &random)
        case 2:
          bytes.insert(contentsOf: pieces[Int.random(in: 0..<pieces.count, using: &random)], at: start)
        default: bytes.append(contentsOf: bytes[start..<end])
        }
        if bytes.isEmpty { break }
      }
      if !faults(bytes).isEmpty { refused += 1 }
    }
    #expect(refused > 2000)
  }
}
