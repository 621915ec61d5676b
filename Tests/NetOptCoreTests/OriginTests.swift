import NetOptCore
import Testing

@Suite struct OriginTests {
  @Test(arguments: [
    ("Example.COM", "example.com"), ("example.com.", "example.com"), (".", "."), ("", ""), ("a..", "a."),
    ("ÄB", "Äb"), ("Ä", "Ä"), ("x_Y-9", "x_y-9"),
  ])
  func normalizesHosts(_ host: String, _ expected: String) {
    #expect(Origin.normalized(host: host) == expected)
    #expect(Origin(.https, host: host).host == expected)
  }

  @Test func namesItsPortOnlyWhenItIsNotTheSchemesOwn() {
    #expect(Origin(.https, host: "a.test").description == "https://a.test")
    #expect(Origin(.https, host: "a.test", port: 443).authority == "a.test")
    #expect(Origin(.https, host: "a.test", port: 80).authority == "a.test:80")
    #expect(Origin(.http, host: "a.test", port: 80).description == "http://a.test")
    #expect(Origin(.http, host: "a.test", port: 443).description == "http://a.test:443")
  }

  @Test func bracketsIPv6() {
    let origin = Origin(.https, host: "2001:db8::1", port: 8443)
    #expect(origin.address == IPAddress("2001:db8::1"))
    #expect(origin.host == "2001:db8::1")
    #expect(origin.hostText == "[2001:db8::1]")
    #expect(origin.description == "https://[2001:db8::1]:8443")
    #expect(Origin(.https, host: "192.0.2.1").hostText == "192.0.2.1")
  }

  @Test func equalAddressesAreEqualOrigins() {
    #expect(Origin(.https, host: "2001:DB8:0::1") == Origin(.https, host: "2001:db8::1"))
    #expect(Origin(.https, host: "192.0.2.1.") == Origin(.https, host: "192.0.2.1"))
  }

  @Test func schemeHostAndPortTellOriginsApart() {
    let origin = Origin(.https, host: "a.test")
    #expect(origin == Origin(.https, host: "A.test.", port: 443))
    #expect(origin != Origin(.http, host: "a.test", port: 443))
    #expect(origin != Origin(.https, host: "b.test"))
    #expect(origin != Origin(.https, host: "a.test", port: 444))
    #expect(origin.address == nil)
  }
}
