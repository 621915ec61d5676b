import Foundation
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptRouting

@Suite struct EndpointListTests {
  @Test func readsTheWholeFormat() throws {
    let text = """
      {
        "schema": 1, "serial": 2026112001,
        "issued": "2026-11-20T00:00:00Z", "expires": "2027-11-20T00:00:00Z",
        "refresh": { "url": "https://api.example.com/iplist.json", "every": "12h" },
        "hosts": {
          "API.example.com.": {
            "port": 8443,
            "health": { "path": "/healthz", "expect": 204 },
            "endpoints": [
              { "ip": "203.0.113.7", "region": "cn-north", "isp": "unicom", "weight": 7 },
              { "ip": "2001:DB8::7" }
            ]
          },
          "b.example": { "endpoints": [{ "ip": "203.0.113.7", "note": "keys that are not known are ignored" }] }
        },
        "contact": ["ops@example.com"]
      }
      """
    let list = try EndpointList(Array(text.utf8), file: "iplist.json", rules: ListRules(now: today))
    #expect(list.schema == 1)
    #expect(list.serial == 2_026_112_001)
    #expect(list.issued == Date(rfc3339: "2026-11-20T00:00:00Z"))
    #expect(list.expires == Date(rfc3339: "2027-11-20T00:00:00Z"))
    #expect(list.refresh?.url.description == "https://api.example.com/iplist.json")
    #expect(list.refresh?.every == .seconds(43_200))
    #expect(list.hosts.keys.sorted() == ["api.example.com", "b.example"])
    #expect(
      list.hosts["api.example.com"]
        == HostEntry(
          port: 8443, health: HostEntry.Health(path: "/healthz", expect: 204),
          endpoints: [
            ListedEndpoint(ip("203.0.113.7"), region: "cn-north", isp: "unicom", weight: 7),
            ListedEndpoint(ip("2001:db8::7")),
          ]))
    #expect(list.hosts["b.example"] == HostEntry(port: 443, endpoints: [ListedEndpoint(ip("203.0.113.7"))]))
    #expect(list.endpointCount == 3)
  }

  @Test func fillsInDefaults() throws {
    let bytes = listBytes(
      """
      "refresh": {"url": "https://a.example/l"},
      "hosts": {"a.example": {"health": {"path": "/"}, "endpoints": [{"ip": "192.0.2.1"}]}}
      """)
    let list = try EndpointList(bytes, file: "l", rules: ListRules(now: today))
    #expect(list.issued == nil)
    #expect(list.expires == nil)
    #expect(list.refresh?.every == .seconds(86_400))
    let host = try #require(list.hosts["a.example"])
    #expect(host.port == 443)
    #expect(host.health?.expect == 200)
    #expect(host.endpoints.first?.weight == 100)
    #expect(host.endpoints.first?.region == nil)
  }

  @Test(arguments: [
    ("60s", 60), ("90s", 90), ("30m", 1800), ("24h", 86_400), ("7d", 604_800), ("365d", 31_536_000),
  ])
  func readsIntervals(_ text: String, _ seconds: Int) {
    let bytes = listBytes(
      "\"refresh\": {\"url\": \"https://a.example/\", \"every\": \"\(text)\"}, \"hosts\": {}")
    let list = EndpointList.check(bytes, rules: ListRules(now: today)).list
    #expect(list?.refresh?.every == .seconds(seconds))
  }

  @Test("a list is expired from its expiry date on, and then read only when the rules allow it")
  func expires() throws {
    let expiry = try #require(Date(rfc3339: "2026-11-20T12:00:00Z"))
    let bytes = listBytes("\"expires\": \"2026-11-20T12:00:00Z\", \"hosts\": {}")
    let before = ListRules(now: expiry - 1)
    let list = try #require(EndpointList.check(bytes, rules: before).list)
    #expect(!list.isExpired(at: expiry - 1))
    #expect(list.isExpired(at: expiry))
    #expect(EndpointList.check(bytes, rules: ListRules(now: expiry)).list == nil)
    let lenient = ListRules(allowExpired: true, now: expiry + 1)
    #expect(EndpointList.check(bytes, rules: lenient).list == list)
    #expect(!EndpointList(hosts: [:]).isExpired(at: .distantFuture))
  }

  @Test func allowsPrivateAddressesWhenAsked() throws {
    let texts = ["127.0.0.1", "10.0.0.1", "169.254.0.1", "::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1"]
    let bytes = listBytes(endpoints: "[" + texts.map { "{\"ip\": \"\($0)\"}" }.joined(separator: ",") + "]")
    let list = EndpointList.check(bytes, rules: ListRules(allowPrivateAddresses: true, now: today)).list
    #expect(list?.hosts["a.example"]?.endpoints.map(\.address) == texts.map(ip))
    #expect(EndpointList.check(bytes, rules: ListRules(now: today)).faults.count == texts.count)
  }

  @Test("a list made in code has lower-case hosts without final dots, and weights from 1 to 1000")
  func madeInCode() {
    let list = EndpointList(hosts: [
      "A.Example.": HostEntry(endpoints: [
        ListedEndpoint(ip("192.0.2.1"), weight: 0), ListedEndpoint(ip("192.0.2.2"), weight: 5000),
      ])
    ])
    #expect(list.hosts["a.example"]?.endpoints.map(\.weight) == [1, 1000])
  }

  @Test("a list names the origins of its hosts, in order")
  func namesOrigins() {
    let endpoints = [ListedEndpoint(ip("192.0.2.1"))]
    let list = EndpointList(hosts: [
      "b.example": HostEntry(port: 80, endpoints: endpoints),
      "a.example": HostEntry(port: 8443, endpoints: endpoints),
    ])
    #expect(list.origins.map(\.description) == ["https://a.example:8443", "http://b.example"])
    #expect(list.origin(of: "B.example.") == Origin(.http, host: "b.example"))
    #expect(list.origin(of: "c.example") == nil)
  }

  @Test("the built-in list is the file iplist.json at the root of the repository")
  func builtInList() throws {
    let file = try RepositoryFile.bytes("iplist.json")
    #expect(Array(EndpointList.builtInText.utf8) == file)
    let list = try EndpointList(Array(file), file: "iplist.json", rules: ListRules(now: today))
    #expect(EndpointList.builtIn == list)
    #expect(list.hosts.keys.sorted() == ["dns.google", "dns.quad9.net", "one.one.one.one"])
    #expect(list.hosts.values.allSatisfy { $0.endpoints.count == 4 && $0.port == 443 })
    #expect(list.refresh == nil)
  }

  @Test func readsTenThousandEndpoints() {
    let bytes = listOfEndpoints(EndpointList.maximumEndpoints)
    let result = EndpointList.check(bytes, rules: ListRules(now: today))
    #expect(result.faults.isEmpty)
    #expect(result.list?.endpointCount == 10_000)
  }

  @Test("a list of 10,001 endpoints is refused")
  func tooManyEndpoints() {
    let result = EndpointList.check(listOfEndpoints(10_001), rules: ListRules(now: today))
    #expect(result.list == nil)
    #expect(
      result.faults.map(\.description)
        == ["$.hosts: the list has 10001 endpoints, more than the limit of 10000; remove some"])
  }

  /// The bytes of a list with `count` endpoints, which are spread over four hosts and have different
  /// addresses.
  private func listOfEndpoints(_ count: Int) -> [UInt8] {
    let hosts = (0..<4).map { host in
      let endpoints = stride(from: host, to: count, by: 4).map { number in
        "{\"ip\":\"20.1.\(number >> 8).\(number & 255)\"}"
      }
      return "\"h\(host).example\":{\"endpoints\":[\(endpoints.joined(separator: ","))]}"
    }
    return listBytes("\"hosts\":{\(hosts.joined(separator: ","))}")
  }
}
