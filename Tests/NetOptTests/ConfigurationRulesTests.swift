import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests of the rules of the configuration file one by one: its errors, its paths and the environment.
@Suite struct ConfigurationRulesTests {
  private let folder: String

  init() throws { folder = try SettingFolder.make() }

  /// Reads an object with these members and `schema_version`.
  private func read(_ members: String, _ environment: [String: String] = [:]) -> ConfigurationFile {
    let comma = members.isEmpty ? "" : ","
    return ConfigurationFile(
      Array("{\"schema_version\":1\(comma)\(members)}".utf8), folder: folder,
      environment: SettingDocument.environment.merging(environment) { $1 })
  }

  @Test(
    "a fault names the path, the kind of the value and what is allowed",
    arguments: [
      (#""dsn":{}"#, "$.dsn: is not a setting; did you mean dns?"),
      (#""dns":{"trys":2}"#, "$.dns.trys: is not a setting; did you mean tries?"),
      (#""dns":{"xyzzy":2}"#, "$.dns.xyzzy: is not a setting"),
      (#""dns":{"tries":11}"#, "$.dns.tries: is 11; allowed: 1 to 10"),
      (#""dns":{"tries":"2"}"#, "$.dns.tries: is a text; allowed: a whole number, 1 to 10"),
      (#""dns":{"tries":2.5}"#, "$.dns.tries: is not a whole number of 64 bits; allowed: 1 to 10"),
      (#""dns":{"timeout_ms":0}"#, "$.dns.timeout_ms: is 0 ms; allowed: 1 ms to 60 s"),
      (#""dns":{"servers":["ns.test"]}"#, "$.dns.servers[0]: is not an address with or without a port"),
      (#""dns":{"servers":["::1","::1"]}"#, "$.dns.servers[1]: is in the array already"),
      (#""dns":null"#, "$.dns: is null; allowed: an object"),
      (#""dns":{},"dns":{}"#, "$.dns: this key appears more than once"),
      (
        #""routing":{"policy":"fastets"}"#,
        #"$.routing.policy: is none of the permitted values; allowed: "fastest", "balanced", "pinned"; did you mean "fastest"?"#
      ),
      (#""routing":{"region":""}"#, "$.routing.region: is empty; allowed: a text"),
      (
        #""list":"iplist.json""#,
        #"$.list: is none of the permitted values; allowed: "none", "built-in" or {"file": PATH}"#
      ),
      (#""list":{}"#, "$.list.file: is missing"),
      (#""allow_private_addresses":1"#, "$.allow_private_addresses: is a number; allowed: true or false"),
      (#""connections":{"idle_age_s":0}"#, "$.connections.idle_age_s: is 0 s; allowed: 1 s to 365 days"),
      (#""tls":{"pins":{"a.test":["sha256/x"]}}"#, #"$.tls.pins["a.test"][0]: is not a pin"#),
      (#""tls":{"pins":{"a.test":[]}}"#, #"$.tls.pins["a.test"]: is empty"#),
      (#""tls":{"hosts":{"a.test:443":{}}}"#, #"$.tls.hosts["a.test:443"]: is not under a host name"#),
      (
        #""tls":{"hosts":{"a.test":{},"A.test":{}}}"#,
        #"$.tls.hosts["A.test"]: is under a name of the same host"#
      ),
      (#""tls":{"hosts":{"a.test":{"pins":{}}}}"#, #"$.tls.hosts["a.test"].pins: is not a setting"#),
      (#""tls":{"ca_file":"a","ca_pem":"b"}"#, "$.tls.ca_pem: cannot be combined with ca_file"),
      (#""tls":{"ca_pem":"b"}"#, "$.tls: tls.caBytes has no certificate in PEM form"),
      (#""tls":{"minimum_version":"1.3","maximum_version":"1.2"}"#, "$.tls: tls.minimumVersion is 1.3"),
      (#""tls":{"cipher_list":"none such"}"#, "$.tls: tls.cipherList names no cipher suite"),
      (
        #""tls":{"client_certificate":{"key_file":"k"}}"#,
        "$.tls.client_certificate.certificate_file: is missing"
      ),
      (#""tls":{"ca_file":"-----BEGIN X"}"#, "$.tls.ca_file: is not a path"),
      (#""user_agent":"a\nb""#, "$.user_agent: is not a text without line ends"),
      (#""proxy":"noen""#, "$.proxy: is not \"environment\", \"none\" or the URL of a proxy"),
      (#""proxy":"ftp://p""#, "$.proxy: cannot be used: its scheme is not one of"),
      (#""proxy":"none","proxy_env":"PROXY""#, "$.proxy_env: cannot be combined with proxy"),
      (#""cache":{"mode":{}}"#, "$.cache.mode: has neither api nor versioned"),
      (#""cache":{"extra_harmless_fields":["a b"]}"#, "$.cache.extra_harmless_fields[0]: is not the name"),
      (#""signing":{"key_id":"k1"}"#, "$.signing.keys_file: is missing"),
      (
        #""signing":{"keys_file":"keys.json","key_id":"k9","hosts":["a.test"]}"#,
        "$.signing.key_id: is not the id"
      ),
      (#""signing":{"keys_file":"keys.json","key_id":"k1","hosts":[]}"#, "$.signing.hosts: is empty"),
      (
        #""signing":{"keys_file":"keys.json","key_id":"k1","hosts":["a.test"],"scheme":"salted-md5"}"#,
        "$.signing.scheme: is weak"
      ),
      (
        #""signing":{"keys_file":"keys.json","key_id":"k1","hosts":["a.test"],"options":{"x":1}}"#,
        "$.signing.options: the options of netopt1 are wrong"
      ),
      (
        #""signing":{"keys_file":"none.json","key_id":"k1","hosts":["a.test"]}"#,
        "$.signing.keys_file: the key ring"
      ),
      (#""defaults":{"timeout_ms":0}"#, "$.defaults.timeout_ms: is 0 ms; allowed: 1 ms to 365 days"),
      (#""defaults":{"timeout_ms":31536000001}"#, "$.defaults.timeout_ms: is 31536000001 ms; allowed"),
      (#""defaults":{"timeout_ms":null}"#, "$.defaults.timeout_ms: is null; allowed"),
      (#""defaults":{"base_url":"api.test/v1"}"#, "$.defaults.base_url: is not an absolute URL of http"),
      (#""defaults":{"base_url":"https://api.test/v1?q=1"}"#, "$.defaults.base_url: is not an absolute URL"),
      (#""defaults":{"headers":[]}"#, "$.defaults.headers: is an array; allowed: an object"),
      (#""defaults":{"headers":{"X-A":1}}"#, #"$.defaults.headers["X-A"]: is a number; allowed: the value"#),
      (#""defaults":{"headers":{"Host":"a.test"}}"#, "$.defaults.headers.Host: belongs to a single request"),
      (
        #""defaults":{"headers":{"content-length":"1"}}"#,
        #"$.defaults.headers["content-length"]: belongs to a single request"#
      ),
      (
        #""defaults":{"headers":{"A":"1","a":"2"}}"#,
        "$.defaults.headers.a: is under a name of the same field"
      ),
      (
        #""cache":{"extra_credential_fields":["X-Who"]},"defaults":{"headers":{"X-Who":"a"}}"#,
        #"$.defaults.headers["X-Who"]: carries credentials"#
      ),
      (#""authorization":{}"#, "$.authorization: is an object; allowed: an array of objects with hosts"),
      (#""authorization":[{"bearer_env":"TOKEN"}]"#, "$.authorization[0].hosts: is missing"),
      (#""authorization":[{"hosts":[],"bearer_env":"TOKEN"}]"#, "$.authorization[0].hosts: is empty"),
      (
        #""authorization":[{"hosts":["a.test:443"],"bearer_env":"TOKEN"}]"#,
        "$.authorization[0].hosts[0]: is not a host name"
      ),
      (
        #""authorization":[{"hosts":["a.test","https://b.test"],"bearer_env":"TOKEN"}]"#,
        "$.authorization[0].hosts[1]: is not a host name"
      ),
      (#""authorization":[{"hosts":["a.test"]}]"#, "$.authorization[0]: has neither basic nor bearer_env"),
      (
        #""authorization":[{"hosts":["a.test"],"bearer_env":"TOKEN","basic":{"user":"u","password_env":"TOKEN"}}]"#,
        "$.authorization[0].bearer_env: cannot be combined with basic"
      ),
      (
        #""authorization":[{"hosts":["a.test"],"basic":{"user":"u"}}]"#,
        "$.authorization[0].basic.password_env: is missing"
      ),
      (
        #""authorization":[{"hosts":["a.test"],"basic":{"password_env":"TOKEN"}}]"#,
        "$.authorization[0].basic.user: is missing"
      ),
      (
        #""authorization":[{"hosts":["a.test"],"basic":{"user":"u:v","password_env":"TOKEN"}}]"#,
        "$.authorization[0].basic.user: is not a user name without colons"
      ),
      (
        #""authorization":[{"hosts":["a.test"],"bearer_env":"TOKEN"},{"hosts":["A.test"],"bearer_env":"TOKEN"}]"#,
        "$.authorization[1]: has a host that an entry before it has already"
      ),
      (#""trusted_keys":["none.pub"]"#, "$.trusted_keys[0]: is neither a minisign public key"),
    ])
  func faults(_ members: String, _ expected: String) {
    let file = read(members)
    #expect(file.faults.first?.description.hasPrefix(expected) == true, "\(file.faults)")
    #expect(file.faultCount == file.faults.count)
  }

  @Test("the version of the format is required")
  func version() {
    for (text, fault) in [
      ("{}", "$.schema_version: is missing"),
      (#"{"schema_version":2}"#, "$.schema_version: is 2; this version"),
      (#"{"schema_version":"1"}"#, "$.schema_version: is a text"),
      ("[]", "$: is an array; allowed: an object"),
      ("{", "$: not JSON"),
    ] {
      let file = ConfigurationFile(Array(text.utf8), folder: ".", environment: [:])
      #expect(file.faults.first?.description.hasPrefix(fault) == true, "\(file.faults)")
    }
  }

  @Test(
    "no message contains a secret that is in the wrong place",
    arguments: [
      #""proxy":"http://user:hunter2@proxy.test""#, #""proxy":"user:hunter2@proxy.test""#,
      #""proxy":"ftp://user:hunter2@proxy.test""#,
      #""proxy_env":"http://user:hunter2@proxy.test""#, #""proxy_env":"hunter2""#, #""proxy_env":"BAD""#,
      #""tls":{"client_certificate":{"certificate_file":"c","passphrase":"hunter2"}}"#,
      #""tls":{"client_certificate":{"certificate_file":"c","passphrase_env":"hunter2"}}"#,
      #""tls":{"client_certificate":{"certificate_file":"c","passphrase_env":"hunter2 too"}}"#,
      #""tls":{"client_certificate":{"certificate_file":"c","passphrase_env":["hunter2"]}}"#,
      #""defaults":{"headers":{"Cookie":"hunter2"}}"#, #""defaults":{"headers":{"X-Api-Key":"hunter2"}}"#,
      #""defaults":{"headers":{"Authorization: Bearer hunter2":""}}"#,
      #""defaults":{"headers":{"X-Text":"hunter2\r\nCookie: hunter2"}}"#,
      #""defaults":{"headers":{"X-Text":["hunter2"]}}"#,
      #""defaults":{"base_url":"https://user:hunter2@api.test/"}"#,
      #""defaults":{"base_url":"https://api.test/?access_token=hunter2"}"#,
      #""authorization":"hunter2""#, #""authorization":["hunter2"]"#,
      #""authorization":[{"hosts":["a.test"],"bearer":"hunter2"}]"#,
      #""authorization":[{"hosts":["a.test"],"token":"hunter2"}]"#,
      #""authorization":[{"hosts":["a.test"],"password":"hunter2"}]"#,
      #""authorization":[{"hosts":["a.test"],"bearer_env":"hunter2"}]"#,
      #""authorization":[{"hosts":["a.test"],"bearer_env":"Bearer hunter2"}]"#,
      #""authorization":[{"hosts":["a.test"],"bearer_env":"TWO_LINES"}]"#,
      #""authorization":[{"hosts":["a.test"],"bearer_env":"EMPTY"}]"#,
      #""authorization":[{"hosts":["user:hunter2@a.test"],"bearer_env":"TOKEN"}]"#,
      #""authorization":[{"hosts":["a.test"],"basic":"user:hunter2"}]"#,
      #""authorization":[{"hosts":["a.test"],"basic":{"user":"u","password":"hunter2"}}]"#,
      #""authorization":[{"hosts":["a.test"],"basic":{"user":"u","password_env":"hunter2"}}]"#,
      #""authorization":[{"hosts":["a.test"],"basic":{"user":"u","password_env":"TWO_LINES"}}]"#,
      #""authorization":[{"hosts":["a.test"],"basic":{"user":"u:hunter2","password_env":"TOKEN"}}]"#,
    ])
  func secrets(_ members: String) {
    let file = read(
      members, ["BAD": "ftp://user:hunter2@proxy.test", "TWO_LINES": "hunter2\n", "EMPTY": ""])
    #expect(file.faultCount == 1)
    #expect(!"\(file.faults)\(file.changes)".contains("hunter2"))
  }

  @Test(
    "keys and texts that look like secrets are in no message, wherever the file lies",
    arguments: [
      #""trusted_keys":["RWRhunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hu"]"#,
      #""tls":{"client_certificate":{"certificate_file":"c","key_file":"MHcCAQhunter2hunter2hunter2hunter2hunter2"}}"#,
      #""signing":{"keys_file":"eyJrhunter2hunter2hunter2hunter2hunter2hunter2","key_id":"k","hosts":["a.test"]}"#,
      #""defaults":{"headers":{"Cookie: a=hunter2":"","Cookie: a=hunter2":""}}"#,
      #""defaults":{"headers":{"Cookie: a=hunter2":[}}"#,
      #""defaults":{"Authorization: Bearer hunter2":""}"#,
      #""defaults":{"headers":{"X-Token:hunter2":""}}"#, #""defaults":{"X-Token:hunter2":""}"#,
    ])
  func contentAsName(_ members: String) {
    for folder in [".", "/etc/app"] {
      let file = ConfigurationFile(
        Array(#"{"schema_version":1,\#(members)}"#.utf8), folder: folder, environment: [:])
      #expect(file.faultCount > 0 || !file.configuration.fileFaults().isEmpty)
      #expect(!"\(file.faults)\(file.configuration.fileFaults())".contains("hunter2"))
    }
  }

  @Test("variables that take precedence make the files of the settings needless")
  func needlessFiles() throws {
    let key = "RWRoc0Amm8ECVQcVY4IHFWOCBxVjggcVY4IHFWOCBxVjggcVY4IHFWOC"
    let file = read(
      #""trusted_keys":["missing.pub"],"routing":{"policy":"pinned"}"#,
      ["NETOPT_TRUSTED_KEYS": key, "NETOPT_POLICY": "fastest"])
    #expect(file.faults.isEmpty)
    #expect(file.configuration.trustedKeys == [try MinisignPublicKey(key)])
    #expect(file.changes.map(\.path) == ["$.trusted_keys"])
  }

  @Test(
    "a literal secret is refused with the way to give it",
    arguments: [
      (
        #""tls":{"client_certificate":{"certificate_file":"c","passphrase":"x"}}"#,
        "$.tls.client_certificate.passphrase", "passphrase_env"
      ),
      (
        #""authorization":[{"hosts":["a.test"],"basic":{"user":"u","password":"x"}}]"#,
        "$.authorization[0].basic.password", "variable in password_env"
      ),
      (#""authorization":[{"hosts":["a.test"],"bearer":"x"}]"#, "$.authorization[0].bearer", "bearer_env"),
      (#""authorization":[{"hosts":["a.test"],"token":"x"}]"#, "$.authorization[0].token", "bearer_env"),
      (
        #""authorization":[{"hosts":["a.test"],"password":"x"}]"#, "$.authorization[0].password",
        "basic.password_env"
      ),
    ])
  func literalSecrets(_ members: String, _ path: String, _ hint: String) {
    let file = read(members)
    #expect(file.faults.map(\.path) == [path])
    #expect(file.faults.first?.message.contains(hint) == true)
  }

  @Test(
    "a client from a file sends default fields and credentials, and the report names the variables")
  func requestSettings() async throws {
    let members =
      #""defaults":{"timeout_ms":2000,"headers":{"X-Team":"a"},"base_url":"https://API.test/v1"},"authorization":["#
      + #"{"hosts":["API.test"],"basic":{"user":"","password_env":"PASSWORD"}},"#
      + #"{"hosts":["plain.test"],"bearer_env":"TOKEN","allow_unprotected":true}]"#
    let file = read(members)
    #expect(file.faults.isEmpty && file.configuration.defaults.timeout == .seconds(2))
    let paths = file.changes.map { "\($0.path) \($0.value)" }
    #expect(
      paths == [
        "$.defaults.timeout_ms 2000", #"$.defaults.headers["X-Team"] "a""#,
        #"$.defaults.base_url "https://api.test/v1""#, #"$.authorization[0].hosts ["API.test"]"#,
        #"$.authorization[0].basic.user """#, #"$.authorization[0].basic.password_env "PASSWORD""#,
        #"$.authorization[1].hosts ["plain.test"]"#, #"$.authorization[1].bearer_env "TOKEN""#,
        "$.authorization[1].allow_unprotected true",
      ])
    let transport = StubTransport([.loopback: .respond()], resolver: StubResolver("api.test", [.loopback]))
    let client = try NetOptClient(file.configuration, transport: transport)
    _ = try await client.execute(client.request(.get, "users"))
    let sent = try #require(transport.received.first?.request)
    #expect(sent.url.description == "https://api.test/v1/users" && sent.headers["X-Team"] == "a")
    #expect(sent.headers["Authorization"] == "Basic Omh1bnRlcjI6IHBhc3N3b3Jk")
    await client.shutdown()
  }

  @Test("words choose sources that are no paths")
  func words() {
    func isBuiltIn(_ file: ConfigurationFile) -> Bool {
      if case .builtIn = file.configuration.list { true } else { false }
    }
    #expect(isBuiltIn(read(#""list":"built-in""#)) && !isBuiltIn(read(#""list":"none""#)))
    #expect(read(#""ranking_history":"none""#).configuration.rankingHistory == .none)
    #expect(read(#""ranking_history":"state-directory""#).configuration.rankingHistory == .stateDirectory)
    #expect(read(#""proxy":"environment""#).configuration.proxy == .environment)
    #expect(read(#""cache":{"mode":"off"}"#).configuration.cache?.options.mode == .off)
    #expect(read(#""cache":{"mode":"http"}"#).configuration.cache?.options.mode == .http)
    #expect(read(#""tls":{"pins":{"*":["sha256/\#(String(repeating: "A", count: 43))="]}}"#).faultCount == 0)
  }

  @Test("environment variables take precedence over the file")
  func environment() throws {
    let key = MinisignPublicKey(idBytes: [1, 2, 3, 4, 5, 6, 7, 8], key: [UInt8](repeating: 9, count: 32))
    try TextFile.write(key.description, to: folder + "/list.pub")
    let members =
      #""routing":{"region":"a","isp":"b","policy":"pinned"},"dns":{"servers":["192.0.2.1"]},"#
      + #""list":{"file":"f"},"tls":{"ca_file":"c"},"trusted_keys":["list.pub"]"#
    var file = read(members)
    #expect(file.faultCount == 0 && file.configuration.trustedKeys == [key])
    file = read(
      members,
      [
        "NETOPT_REGION": "north", "NETOPT_ISP": "", "NETOPT_POLICY": "balanced",
        "NETOPT_IPLIST": "other.json",
        "NETOPT_DNS_SERVERS": "127.0.0.1:53, ::1", "NETOPT_CACERT": "other.pem",
        "NETOPT_TRUSTED_KEYS": "\(key), \(folder)/list.pub",
      ])
    #expect(file.faults.isEmpty)
    let configuration = file.configuration
    #expect(configuration.routing == RoutingConfiguration(region: "north", isp: "b", policy: .balanced))
    #expect(configuration.dns.servers == ["127.0.0.1:53", "::1"])
    #expect(configuration.tls.caFile == "other.pem")
    #expect(configuration.trustedKeys == [key, key])
    if case .file(let path) = configuration.list { #expect(path == "other.json") } else { Issue.record() }
    #expect(file.changes.contains(.init(path: "$.routing.isp", value: "b", variable: nil)))
    #expect(file.changes.contains(.init(path: "$.routing.region", value: "north", variable: "NETOPT_REGION")))
    #expect(!file.changes.contains(.init(path: "$.routing.region", value: "a", variable: nil)))
  }

  @Test(
    "an invalid environment variable is refused by its name",
    arguments: [
      ("NETOPT_POLICY", "fast"), ("NETOPT_DNS_SERVERS", "ns.test"), ("NETOPT_DNS_SERVERS", ","),
      ("NETOPT_TRUSTED_KEYS", ","), ("NETOPT_TRUSTED_KEYS", "/nowhere"),
      ("NETOPT_REGION", "a" + String(repeating: "\u{301}", count: 100)),
    ])
  func invalidVariables(_ name: String, _ value: String) {
    #expect(read("", [name: value]).faults.map(\.path) == [name])
  }

  @Test("init(file:) throws invalidConfiguration with the first fault, or unreadableFile")
  func errors() throws {
    let path = folder + "/netopt.json"
    try TextFile.write(#"{"schema_version":1,"dns":{"tries":0,"timeout_ms":0}}"#, to: path)
    var error = #expect(throws: NetOptError.self) { try ClientConfiguration(file: path, environment: [:]) }
    #expect(error?.code == .invalidConfiguration)
    #expect(
      error?.message
        == "the configuration \(path) is not usable: $.dns.timeout_ms: is 0 ms; allowed: 1 ms to 60 s; `netopt config check` shows 1 more"
    )
    error = #expect(throws: NetOptError.self) { try ClientConfiguration(file: folder + "/none.json") }
    #expect(error?.code == .unreadableFile)
    error = #expect(throws: NetOptError.self) { try ClientConfiguration(file: "/dev/zero", environment: [:]) }
    #expect(error?.code == .invalidConfiguration && error?.message.contains("larger than 1 MiB") == true)
  }

  @Test("a client is made from a file, whose relative paths begin in its folder")
  func client() async throws {
    let list = #"{"schema":1,"serial":7,"hosts":{"api.test":{"endpoints":[{"ip":"203.0.113.7"}]}}}"#
    try TextFile.write(list, to: folder + "/iplist.json")
    let path = folder + "/netopt.json"
    let members =
      #""list":{"file":"iplist.json"},"probing":{"at_start":false},"ranking_history":"none","proxy":"none""#
    try TextFile.write(#"{"schema_version":1,\#(members)}"#, to: path)
    let configuration = try ClientConfiguration(file: path, environment: [:])
    #expect(configuration.fileFaults().isEmpty)
    let client = try NetOptClient(configuration, transport: StubTransport([:]), resolver: StubResolver())
    #expect(client.list?.serial == 7)
    await client.shutdown()
    try TextFile.write("{}", to: folder + "/iplist.json")
    #expect(configuration.fileFaults().map(\.path) == ["$.list"])
  }

  @Test("fileFaults names the client certificate and the host whose files a client could not use")
  func certificateFaults() async throws {
    let tls = try await TLSFixture.shared.value
    let certificate = { (certificate: String, key: String) in
      #""client_certificate":{"certificate_file":"\#(certificate)","key_file":"\#(key)"}"#
    }
    let good = certificate(tls.path("alice.pem"), tls.path("alice.key"))
    let bad = certificate(tls.path("alice.pem"), tls.path("ca.key"))
    var file = read(#""tls":{"ca_file":"\#(tls.path("ca.pem"))",\#(good)}"#)
    #expect(file.faults.isEmpty && file.configuration.fileFaults().isEmpty)
    file = read(#""tls":{"hosts":{"a.test":{\#(bad)}}}"#)
    #expect(file.configuration.fileFaults().map(\.path) == [#"$.tls.hosts["a.test"].client_certificate"#])
    let encrypted = certificate(tls.path("alice.pem"), tls.path("alice-encrypted.key"))
    file = read(#""tls":{\#(encrypted.dropLast()),"passphrase_env":"PHRASE"}}"#)
    #expect(file.faults.isEmpty)
    let faults = file.configuration.fileFaults()
    #expect(faults.map(\.path) == ["$.tls.client_certificate"] && !"\(faults)".contains("hunter2"))
  }

  @Test("fileFaults reports files that a client could not use")
  func fileFaults() {
    let file = read(
      #""list":{"file":"none.json"},"tls":{"ca_file":"none.pem"},"cache":{"seed_packs":["none"]}"#)
    #expect(file.faults.isEmpty)
    #expect(
      file.configuration.fileFaults().map(\.path) == ["$.list", "$.tls.ca_file", "$.cache.seed_packs[0]"])
  }
}
