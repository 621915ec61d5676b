import FoundationEssentials

extension EndpointList {
  /// The list that is compiled into the program: `iplist.json` at the root of the repository.
  public static let builtIn: EndpointList = {
    // An expired list is accepted here, because clients check the expiry when they use the list.
    let rules = ListRules(allowExpired: true, now: .distantPast)
    guard let list = check(Array(builtInText.utf8), rules: rules).list else {
      preconditionFailure("the compiled-in list keeps all rules; a test sees to it")
    }
    return list
  }()

  /// The text of `iplist.json`, byte for byte; a test compares both. The text is compiled into the program,
  /// so that the program needs no resource bundle and can be copied as a single file.
  static let builtInText = """
    {
      "schema": 1,
      "serial": 2026112001,
      "issued": "2026-11-20T00:00:00Z",
      "expires": "2027-11-20T00:00:00Z",
      "hosts": {
        "one.one.one.one": {
          "port": 443,
          "endpoints": [
            { "ip": "1.1.1.1" },
            { "ip": "1.0.0.1" },
            { "ip": "2606:4700:4700::1111" },
            { "ip": "2606:4700:4700::1001" }
          ]
        },
        "dns.google": {
          "port": 443,
          "endpoints": [
            { "ip": "8.8.8.8" },
            { "ip": "8.8.4.4" },
            { "ip": "2001:4860:4860::8888" },
            { "ip": "2001:4860:4860::8844" }
          ]
        },
        "dns.quad9.net": {
          "port": 443,
          "endpoints": [
            { "ip": "9.9.9.9" },
            { "ip": "149.112.112.112" },
            { "ip": "2620:fe::fe" },
            { "ip": "2620:fe::9" }
          ]
        }
      }
    }

    """
}
