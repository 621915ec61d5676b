import NetOptCore
import Testing

@Suite struct OriginTests {
  @Test(
    "hosts lose their ASCII upper case and one dot at the end",
    arguments: [
      ("Example.COM", "example.com"), ("example.com.", "example.com"), (".", "."), ("", ""), ("a..", "a."),
      ("ÄB", "Äb"), ("Ä", "Ä"), ("x_Y-9", "x_y-9"),
    ])
  func normalizesHosts(_ host: String, _ expected: String) {
    #expect(Origin.normalized(host: host) == expected)
    #expect(Origin(.https, host: host).host == expected)
  }

  @Test("an origin prints its port only if it is not the scheme's default port")
  func portText() {
    #expect(Origin(.https, host: "a.test").description == "https://a.test")
    #expect(Origin(.https, host: "a.test", port: 443).authority == "a.test")
    #expect(Origin(.https, host: "a.test", port: 80).authority == "a.test:80")
    #expect(Origin(.http, host: "a.test", port: 80).description == "http://a.test")
    #expect(Origin(.http, host: "a.test", port: 443).description == "http://a.test:443")
  }

  @Test("an origin prints an IPv6 host in brackets")
  func ipv6Host() {
    let origin = Origin(.https, host: "2001:db8::1", port: 8443)
    #expect(origin.address == IPAddress("2001:db8::1"))
    #expect(origin.host == "2001:db8::1")
    #expect(origin.hostText == "[2001:db8::1]")
    #expect(origin.description == "https://[2001:db8::1]:8443")
    #expect(Origin(.https, host: "192.0.2.1").hostText == "192.0.2.1")
  }

  @Test("origins are equal if their hosts are the same address in different forms")
  func equalAddresses() {
    #expect(Origin(.https, host: "2001:DB8:0::1") == Origin(.https, host: "2001:db8::1"))
    #expect(Origin(.https, host: "192.0.2.1.") == Origin(.https, host: "192.0.2.1"))
  }

  @Test("origins are equal only if scheme, host and port are equal")
  func equality() {
    let origin = Origin(.https, host: "a.test")
    #expect(origin == Origin(.https, host: "A.test.", port: 443))
    #expect(origin != Origin(.http, host: "a.test", port: 443))
    #expect(origin != Origin(.https, host: "b.test"))
    #expect(origin != Origin(.https, host: "a.test", port: 444))
    #expect(origin.address == nil)
  }
}
