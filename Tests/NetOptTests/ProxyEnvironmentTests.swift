import NetOptCore
import Testing

@testable import NetOpt

@Suite struct ProxyEnvironmentTests {
  private let https = Origin(.https, host: "api.test")
  private let http = Origin(.http, host: "api.test")

  @Test("each scheme uses its own proxy variable, and all_proxy otherwise")
  func schemeVariables() {
    let environment = ProxyEnvironment([
      "http_proxy": "http://a:1", "https_proxy": "http://b:2", "all_proxy": "socks5h://c:3",
    ])
    #expect(environment.proxy(for: http) == "http://a:1")
    #expect(environment.proxy(for: https) == "http://b:2")
    let all = ProxyEnvironment(["ALL_PROXY": "socks5h://c:3"])
    #expect(all.proxy(for: http) == "socks5h://c:3")
    #expect(all.proxy(for: https) == "socks5h://c:3")
    #expect(ProxyEnvironment(["HTTPS_PROXY": "b:2"]).proxy(for: https) == "b:2")
    #expect(ProxyEnvironment([:]).proxy(for: https) == nil)
    #expect(ProxyEnvironment(["https_proxy": ""]).proxy(for: https) == nil)
  }

  /// A web server passes a request's `Proxy` field on to CGI programs as HTTP_PROXY.
  @Test("HTTP_PROXY in upper case is ignored")
  func upperCaseHTTP() {
    #expect(ProxyEnvironment(["HTTP_PROXY": "http://evil:1"]).proxy(for: http) == nil)
  }

  @Test(
    "no_proxy excepts hosts by name and by parent domain",
    arguments: [
      ("*", true), ("api.test", true), ("API.TEST.", true), ("test", true), (".test", true),
      ("pi.test", false),
      ("other.test, test", true), ("other.test test", true), ("", false), ("api.test.other", false),
      ("10.0.0.0/8", false),
    ])
  func exceptedNames(_ exceptions: String, _ isExcepted: Bool) {
    let environment = ProxyEnvironment(["https_proxy": "p:1", "no_proxy": exceptions])
    #expect((environment.proxy(for: https) == nil) == isExcepted)
  }

  @Test(
    "no_proxy excepts hosts by address and by address prefix",
    arguments: [
      ("10.1.2.3", "10.0.0.0/8", true), ("11.1.2.3", "10.0.0.0/8", false), ("10.1.2.3", "10.1.2.3", true),
      ("10.1.2.3", "10.1.2.3/32", true), ("10.1.2.3", "10.1.2.2/31", true),
      ("10.1.2.4", "10.1.2.2/31", false),
      ("10.1.2.3", "0.0.0.0/0", true), ("2001:db8::1", "2001:db8::/32", true),
      ("2001:db8::1", "[2001:db8::1]", true),
      ("2001:db8::1", "10.0.0.0/8", false), ("10.1.2.3", "10.0.0.0/33", false),
      ("10.1.2.3", "10.0.0.0/x", false),
      ("10.1.2.3", "3", false),
    ])
  func exceptedAddresses(_ host: String, _ exception: String, _ isExcepted: Bool) {
    let environment = ProxyEnvironment(["https_proxy": "p:1", "no_proxy": exception])
    #expect((environment.proxy(for: Origin(.https, host: host)) == nil) == isExcepted)
  }
}

/// Tests that a program may print or dump a configuration without showing the user name or password of its
/// proxy.
@Suite struct ProxyDumpTests {
  @Test(
    "no text made of a configuration shows the credentials in its proxy's URL",
    arguments: [
      "http://user:sesame@proxy.test:3128", "http://sesame@proxy.test", "user:sesame%40proxy.test:80",
      "http://user:sesame", "http://user:ses%61me@proxy.test/?token=sesame",
    ])
  func proxies(_ url: String) {
    var configuration = ClientConfiguration()
    configuration.proxy = .url(url)
    for value in [configuration, configuration.proxy, Optional(configuration.proxy) as Any] {
      var dumped = ""
      dump(value, to: &dumped)
      for text in [dumped, "\(value)", String(reflecting: value)] {
        #expect(!text.contains("sesame") && !text.contains("ses%61me"), "\(text)")
      }
    }
    #expect("\(configuration.proxy)".hasPrefix("url("))
    #expect(
      "\(ClientConfiguration.Proxy.none) \(ClientConfiguration.Proxy.environment)" == "none environment")
  }
}
