import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// A table of servers and TLS settings. For each pair, the request succeeds, or its error says what was wrong
/// and what to do.
@Suite struct TLSVerdictTests {
  typealias TLS = ClientConfiguration.TLS

  /// What a client makes of a server.
  enum Verdict {
    /// The request succeeds, and the server knows the client by this name.
    case answer(String)
    /// The request fails with this code, and the message contains the texts.
    case error(NetOptError.Code, [String])
  }

  /// A row of the table.
  struct Row {
    let name: String
    let server: String
    let verdict: Verdict
    /// The pins of the host in the IP list.
    var listPins: [String] = []
    var verification = RequestOptions.Verification.full
    let change: (inout TLS) -> Void
  }

  private static func rows(_ files: TLSFixture) throws -> [Row] {
    let plain = files.server("server")
    let ca = try files.bytes("ca.pem")
    let right = try #require(files.pins["server"])
    let reserve = try #require(files.pins["next"])
    let wrong = try #require(files.pins["alice"])
    func alice(_ tls: inout TLS) {
      tls.clientCertificate = ClientCertificate(
        certificateFile: files.path("alice.pem"), keyFile: files.path("alice.key"))
    }
    func certificate(_ name: String) -> (inout TLS) -> Void {
      {
        $0.clientCertificate = ClientCertificate(
          certificateFile: files.path(name + ".pem"), keyFile: files.path(name + ".key"))
      }
    }
    let old = "\"min\":\"1.2\",\"max\":\"1.2\"", new = "\"min\":\"1.3\""
    let suite = "\"ciphers\":\"ECDHE-ECDSA-AES256-GCM-SHA384\""
    let asks = { (more: String) in files.server("server", asks: "ca", more) }
    let secret: ClientCertificate.Passphrase = { "secret" }
    return [
      // Trust.
      Row(name: "valid", server: plain, verdict: .answer("nobody")) { _ in },
      Row(
        name: "wrong name", server: files.server("wrong-name"),
        verdict: .error(.certificateName, ["for portal.test", "not for api.test"])
      ) { _ in },
      Row(
        name: "expired", server: files.server("expired"),
        verdict: .error(.certificateExpired, ["has expired; renew it"])
      ) { _ in },
      Row(
        name: "not yet valid", server: files.server("not-yet-valid"),
        verdict: .error(.certificateExpired, ["not yet valid; check this machine's clock"])
      ) { _ in },
      Row(
        name: "self-signed", server: files.server("self-signed"),
        verdict: .error(.certificateUntrusted, ["not signed by a trusted authority", "--cacert"])
      ) { _ in },
      Row(
        name: "other authority", server: files.server("of-other"),
        verdict: .error(.certificateUntrusted, ["not signed by a trusted authority", "--cacert"])
      ) { _ in },
      Row(
        name: "certificate of a client", server: files.server("for-clients"),
        verdict: .error(.certificateUntrusted, ["not for servers (extended key usage)", "another one"])
      ) { _ in },
      Row(
        name: "missing intermediate", server: files.server("without-chain"),
        verdict: .error(.certificateUntrusted, ["make the server send the certificates between"])
      ) { _ in },
      Row(name: "intermediate sent", server: files.server("with-chain"), verdict: .answer("nobody")) { _ in },
      Row(name: "intermediate trusted", server: files.server("without-chain"), verdict: .answer("nobody")) {
        $0.caFile = files.path("intermediate.pem")
      },
      Row(
        name: "system's authorities", server: plain,
        verdict: .error(.certificateUntrusted, ["--cacert"])
      ) { $0.caFile = nil },
      Row(name: "authorities as bytes", server: plain, verdict: .answer("nobody")) {
        $0.caFile = nil
        $0.caBytes = ca
      },
      Row(name: "authorities of the host", server: plain, verdict: .answer("nobody")) {
        $0.hosts["API.test"] = $0
        $0.caFile = files.path("other-ca.pem")
      },
      Row(
        name: "other authorities of the host", server: plain,
        verdict: .error(.certificateUntrusted, ["--cacert"])
      ) {
        $0.hosts["api.test"] = TLS()
        $0.hosts["api.test"]?.caFile = files.path("other-ca.pem")
      },
      Row(
        name: "no verification", server: files.server("self-signed"), verdict: .answer("nobody"),
        verification: .none
      ) { _ in },
      // Versions and cipher suites.
      Row(
        name: "TLS 1.1",
        server: files.server(
          "server", "\"min\":\"1.1\",\"max\":\"1.1\",\"ciphers\":\"DEFAULT:@SECLEVEL=0\""),
        verdict: .error(.tlsFailed, ["no version of TLS that the settings allow (1.2 or later)"])
      ) { _ in },
      Row(name: "TLS 1.2", server: files.server("server", old), verdict: .answer("nobody")) { _ in },
      Row(name: "TLS 1.3", server: files.server("server", new), verdict: .answer("nobody")) { _ in },
      Row(
        name: "TLS 1.2, too old", server: files.server("server", old),
        verdict: .error(.tlsFailed, ["(1.3 or later)"])
      ) { $0.minimumVersion = .tls13 },
      Row(
        name: "TLS 1.3, too new", server: files.server("server", new),
        verdict: .error(.tlsFailed, ["(only 1.2)"])
      ) { $0.maximumVersion = .tls12 },
      Row(name: "only TLS 1.3", server: plain, verdict: .answer("nobody")) {
        ($0.minimumVersion, $0.maximumVersion) = (.tls13, .tls13)
      },
      Row(
        name: "the server's cipher suite", server: files.server("server", old + "," + suite),
        verdict: .answer("nobody")
      ) {
        $0.cipherList = "ECDHE-ECDSA-AES256-GCM-SHA384"
      },
      Row(
        name: "no cipher suite in common", server: files.server("server", old + "," + suite),
        verdict: .error(.tlsFailed, ["no cipher suite in common"])
      ) { $0.cipherList = "ECDHE-ECDSA-AES128-GCM-SHA256" },
      Row(name: "a cipher suite of TLS 1.3", server: files.server("server", new), verdict: .answer("nobody"))
      {
        $0.cipherSuites = "TLS_CHACHA20_POLY1305_SHA256"
      },
      // Pins.
      Row(name: "pin", server: plain, verdict: .answer("nobody")) { $0.pins = ["api.test": [right]] },
      Row(
        name: "wrong pin", server: plain,
        verdict: .error(.certificatePin, ["none of the pinned keys of api.test", "--pinnedpubkey"])
      ) {
        $0.pins = ["api.test": [wrong]]
      },
      Row(name: "pin in reserve", server: plain, verdict: .answer("nobody")) {
        $0.pins = ["api.test": [reserve, right]]
      },
      Row(name: "the key in reserve", server: files.server("next"), verdict: .answer("nobody")) {
        $0.pins = ["api.test": [right, reserve]]
      },
      Row(
        name: "wrong pins", server: plain, verdict: .error(.certificatePin, ["add its pin"])
      ) {
        $0.pins = ["api.test": [wrong, reserve]]
      },
      Row(name: "pin of another host", server: plain, verdict: .answer("nobody")) {
        $0.pins = ["other.test": [wrong]]
      },
      Row(name: "wrong pin for every host", server: plain, verdict: .error(.certificatePin, [])) {
        $0.pins = ["*": [wrong]]
      },
      Row(name: "own pin beside that of every host", server: plain, verdict: .answer("nobody")) {
        $0.pins = ["*": [wrong], "api.test": [right]]
      },
      Row(name: "pin in the list", server: plain, verdict: .answer("nobody"), listPins: [right]) { _ in },
      Row(
        name: "wrong pin in the list", server: plain,
        verdict: .error(.certificatePin, ["pins in the IP list"]),
        listPins: [wrong]
      ) { _ in },
      Row(name: "pins of the settings go first", server: plain, verdict: .answer("nobody"), listPins: [wrong])
      {
        $0.pins = ["api.test": [right]]
      },
      Row(
        name: "wrong pin without verification", server: files.server("self-signed"),
        verdict: .error(.certificatePin, []), verification: .none
      ) { $0.pins = ["api.test": [right]] },
      // Client certificates.
      Row(
        name: "no client certificate, TLS 1.3", server: asks(new),
        verdict: .error(.tlsFailed, ["requires a client certificate", "--cert"])
      ) { _ in },
      Row(
        name: "no client certificate, TLS 1.2", server: asks(old),
        verdict: .error(.tlsFailed, ["client certificate"])
      ) { _ in },
      Row(name: "client certificate, TLS 1.3", server: asks(new), verdict: .answer("alice"), change: alice),
      Row(name: "client certificate, TLS 1.2", server: asks(old), verdict: .answer("alice"), change: alice),
      Row(
        name: "client certificate of another authority, TLS 1.3", server: asks(new),
        verdict: .error(
          .tlsFailed, ["refused the client certificate", "unknown ca", "which authorities it trusts"]),
        change: certificate("of-other-client")),
      Row(
        name: "client certificate of another authority, TLS 1.2", server: asks(old),
        verdict: .error(.tlsFailed, ["refused the client certificate", "unknown ca"]),
        change: certificate("of-other-client")),
      Row(
        name: "expired client certificate", server: asks(new),
        verdict: .error(.tlsFailed, ["refused the client certificate", "expired"]),
        change: certificate("expired-client")),
      Row(
        name: "client certificate that OpenSSL refuses", server: asks(new),
        verdict: .error(.tlsFailed, ["client certificate cannot be used", "(tls.clientCertificate)"]),
        change: certificate("short-key-client")),
      Row(
        name: "client certificate nobody needs", server: asks("\"required\":false"),
        verdict: .answer("nobody")
      ) { _ in },
      Row(
        name: "client certificate by choice", server: asks("\"required\":false"), verdict: .answer("alice"),
        change: alice),
      Row(
        name: "client certificate nobody asks for", server: plain, verdict: .answer("nobody"), change: alice),
      Row(name: "client certificate of the host", server: asks(""), verdict: .answer("bob")) {
        var own = $0
        certificate("bob")(&own)
        $0.hosts["api.test"] = own
        alice(&$0)
      },
      Row(name: "one file for certificate and key", server: asks(""), verdict: .answer("alice")) {
        $0.clientCertificate = ClientCertificate(certificateFile: files.path("alice-both.pem"))
      },
      Row(name: "certificate and key as bytes", server: asks(""), verdict: .answer("alice")) {
        $0.clientCertificate = ClientCertificate(
          certificate: (try? files.bytes("alice.pem")) ?? [], key: try? files.bytes("alice.key"))
      },
      Row(name: "encrypted key", server: asks(""), verdict: .answer("alice")) {
        $0.clientCertificate = ClientCertificate(
          certificateFile: files.path("alice.pem"), keyFile: files.path("alice-encrypted.key"),
          passphrase: secret)
      },
      Row(name: "PKCS #12", server: asks(""), verdict: .answer("alice")) {
        $0.clientCertificate = ClientCertificate(pkcs12File: files.path("alice.p12"), passphrase: secret)
      },
      // Revocation.
      Row(name: "not revoked", server: plain, verdict: .answer("nobody")) {
        $0.revocationFile = files.path("crl.pem")
      },
      Row(
        name: "revoked", server: files.server("revoked"),
        verdict: .error(.certificateUntrusted, ["is revoked", "--crlfile"])
      ) { $0.revocationFile = files.path("crl.pem") },
      Row(
        name: "no list of the issuer", server: plain,
        verdict: .error(.certificateUntrusted, ["is not known", "is missing", "--crlfile"])
      ) {
        $0.revocationFile = files.path("crl-of-other.pem")
      },
      Row(
        name: "expired list", server: plain,
        verdict: .error(.certificateUntrusted, ["is not known", "has expired", "--crlfile"])
      ) {
        $0.revocationFile = files.path("crl-expired.pem")
      },
    ]
  }

  @Test(
    "a server that requires a client certificate is named each time, however fast it resets the connection")
  func fastRefusals() async throws {
    let files = try await TLSFixture.shared.value
    let row = try #require(try Self.rows(files).first { $0.name == "no client certificate, TLS 1.3" })
    let servers = try await TLSServers([row.server])
    defer { servers.stop() }
    let entry = HostEntry(port: servers.ports[0], endpoints: [ListedEndpoint(.loopback)])
    for round in 0..<60 {
      var configuration = files.configuration(["api.test": entry])
      configuration.probing.firstRequestWait = .zero
      let client = try NetOptClient(configuration)
      let request = try NetOptRequest(.get, "https://api.test:\(servers.ports[0])/")
      for attempt in ["first", "second"] {
        await check(row, client, request, "round \(round), \(attempt) request")
      }
      await client.shutdown()
    }
  }

  @Test("each pair of server and settings has its verdict, and each refusal says what to do")
  func verdicts() async throws {
    let files = try await TLSFixture.shared.value
    let rows = try Self.rows(files)
    #expect(rows.count >= 50)
    let servers = try await TLSServers(rows.map(\.server))
    defer { servers.stop() }
    #expect(servers.ports.count == rows.count)
    for (row, port) in zip(rows, servers.ports) {
      let entry = HostEntry(
        port: port, pins: row.listPins.compactMap { PublicKeyPin($0) }, endpoints: [ListedEndpoint(.loopback)]
      )
      var configuration = files.configuration(["api.test": entry])
      configuration.probing.firstRequestWait = .zero
      row.change(&configuration.tls)
      let client = try NetOptClient(configuration)
      var request = try NetOptRequest(.get, "https://api.test:\(port)/")
      request.options.verification = row.verification
      request.options.timeout = .seconds(10)
      // The first request normally meets the fault itself. The second one may find the endpoint excluded for
      // the fault, and must say the same.
      for attempt in ["first", "second"] {
        await check(row, client, request, "\(row.name), \(attempt) request")
      }
      await client.shutdown()
    }
  }

  /// Sends a request, and checks that its result is the verdict of a row.
  private func check(_ row: Row, _ client: NetOptClient, _ request: NetOptRequest, _ name: String) async {
    do throws(NetOptError) {
      let response = try await client.execute(request)
      let body = String(decoding: try await response.body.collect(upTo: 100), as: UTF8.self)
      if case .answer(body) = row.verdict {} else { Issue.record("\(name): the answer is \(body)") }
    } catch {
      if case .error(error.code, let words) = row.verdict {
        for word in words { #expect(error.message.contains(word), "\(name): \(error.message)") }
      } else {
        Issue.record("\(name): \(error.code): \(error.message)")
      }
    }
  }

  @Test("settings that make no sense are refused when the client is made, with the setting and the fault")
  func refusedSettings() async throws {
    let files = try await TLSFixture.shared.value
    func pair(_ certificate: String, _ key: String, _ phrase: ClientCertificate.Passphrase? = nil) -> (
      inout TLS
    ) -> Void {
      {
        $0.clientCertificate = ClientCertificate(
          certificateFile: files.path(certificate), keyFile: files.path(key), passphrase: phrase)
      }
    }
    func bundle(_ file: String, _ phrase: ClientCertificate.Passphrase? = nil) -> (inout TLS) -> Void {
      { $0.clientCertificate = ClientCertificate(pkcs12File: files.path(file), passphrase: phrase) }
    }
    let right = try #require(files.pins["server"])
    let rows: [(String, (inout TLS) -> Void)] = [
      ("does not belong to the private key", pair("alice.pem", "bob.key")),
      ("give the passphrase", pair("alice.pem", "alice-encrypted.key")),
      ("passphrase does not decrypt", pair("alice.pem", "alice-encrypted.key", { "other" })),
      (
        "MISSING_VARIABLE",
        pair("alice.pem", "alice-encrypted.key", ClientCertificate.passphrase(inVariable: "MISSING_VARIABLE"))
      ),
      ("no private key in PEM form", pair("alice.pem", "alice.pem")),
      ("no valid certificate in PEM form", pair("alice.key", "alice.key")),
      ("No such file", pair("missing.pem", "alice.key")),
      ("no valid certificate", pair("nothing.pem", "alice.key")),
      ("cannot be decrypted", bundle("alice.p12", { "other" })),
      ("cannot be decrypted", bundle("alice.p12")),
      ("not in PKCS #12 form", bundle("alice.pem", { "secret" })),
      ("more than 8192 bits", pair("alice.pem", "huge-modulus.key")),
      ("more than 8192 bits", pair("alice.pem", "huge-exponent.key")),
      ("more than 8192 bits", pair("alice.pem", "huge-prime.key")),
      ("more than 8192 bits", pair("alice.pem", "huge-factors.key")),
      ("of a type that TLS does not use", pair("alice.pem", "agreement.key", { "secret" })),
      ("minimumVersion is 1.3", { ($0.minimumVersion, $0.maximumVersion) = (.tls13, .tls12) }),
      ("tls.cipherList names no cipher suite", { $0.cipherList = "NOTHING" }),
      ("tls.cipherList names no cipher suite", { $0.cipherList = "aNULL:@SECLEVEL=0" }),
      ("tls.cipherSuites names no cipher suite", { $0.cipherSuites = "ECDHE-ECDSA-AES256-GCM-SHA384" }),
      ("which is no pin", { $0.pins = ["api.test": ["sha256/AAAA"]] }),
      ("which is no pin", { $0.pins = ["api.test": [String(right.dropFirst(7))]] }),
      ("is empty, so no key", { $0.pins = ["api.test": []] }),
      ("tls.pins has \"api.test:443\"", { $0.pins = ["api.test:443": [right]] }),
      (
        "tls.hosts has \"https://api.test/\", which is no host name",
        { $0.hosts = ["https://api.test": TLS()] }
      ),
      ("both caFile and caBytes", { ($0.caFile, $0.caBytes) = (files.path("ca.pem"), []) }),
      ("no certificate in PEM form", { $0.caFile = files.path("nothing.pem") }),
      ("no valid list in PEM form", { $0.revocationFile = files.path("ca.pem") }),
      ("cannot be written", { $0.keyLog = files.path("missing/log") }),
      ("not a regular file", { $0.keyLog = "/dev/null" }),
    ]
    for (words, change) in rows {
      var configuration = ClientConfiguration()
      change(&configuration.tls)
      let error = #expect(throws: NetOptError.self, "\(words)") { try NetOptClient(configuration) }
      #expect(error?.code == .invalidConfiguration, "\(words): \(error?.code.description ?? "")")
      #expect(error?.message.contains(words) == true, "\(words): \(error?.message ?? "")")
      #expect(error?.message.contains("secret") == false)
    }
  }
}
