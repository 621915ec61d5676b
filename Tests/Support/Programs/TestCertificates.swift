import NetOptTestSupport
import NetOptCore

/// A certificate and its key, in files.
package struct TestCertificate: Sendable, Hashable {
  /// The file with the certificate, in PEM format.
  package let certificateFile: String
  /// The file with the private key, in PEM format.
  package let keyFile: String
  /// The host names and IP addresses in the certificate.
  package let names: [String]

  /// The same certificate followed by other certificates, as in a server's chain.
  ///
  /// - Parameter others: certificates in PEM format.
  package func followed(by others: [String]) throws -> TestCertificate {
    let file = "\(try TemporaryDirectory.make("certificates"))/certificates.pem"
    try TextFile.write(TextFile.read(certificateFile) + others.joined(), to: file)
    return TestCertificate(certificateFile: file, keyFile: keyFile, names: names)
  }
}

/// Certificates for tests. The openssl(1) command makes each certificate at its first use, and the test
/// process keeps it until it ends. Keys are P-256; making a key takes about 10 ms.
package actor TestCertificates {
  /// The kinds of certificate.
  package enum Kind: Hashable, Sendable {
    /// Signed by the private authority, valid now.
    case valid
    /// Signed by the private authority, valid only on the first day of 2020.
    case expired
    /// Signed by the private authority, valid from 2090 on. A client whose clock was set back sees a valid
    /// certificate like this.
    case notYetValid
    /// Signed with its own key, valid now.
    case selfSigned
    /// Signed by another private authority with the same name, valid now.
    case otherAuthority
  }

  private enum Wanted: Hashable {
    case authority
    case otherAuthority
    case leaf(Kind, [String])
  }

  private static let shared = TestCertificates()

  private var made: [Wanted: Task<TestCertificate, any Error>] = [:]

  /// The file with the certificate of the private authority, as the value of `--cacert`.
  package static func authorityFile() async throws -> String {
    try await shared.get(.authority).certificateFile
  }

  /// A certificate for host names or IP addresses. The same arguments always return the same certificate.
  ///
  /// - Parameters:
  ///   - kind: the validity and the signer of the certificate.
  ///   - names: host names and IP addresses. The first name is also the common name.
  /// - Precondition: `names` is not empty.
  package static func certificate(
    _ kind: Kind = .valid, for names: [String]
  ) async throws -> TestCertificate {
    precondition(!names.isEmpty, "a certificate is for one name at least")
    return try await shared.get(.leaf(kind, names))
  }

  private func get(_ wanted: Wanted) async throws -> TestCertificate {
    let task = made[wanted] ?? Task { try await make(wanted) }
    made[wanted] = task
    return try await task.value
  }

  private func make(_ wanted: Wanted) async throws -> TestCertificate {
    let directory = try TemporaryDirectory.make("certificate")
    switch wanted {
    case .authority, .otherAuthority:
      return try await Self.openssl(
        ["req", "-x509", "-days", "30"] + Self.newKey + ["-subj", "/CN=netopt test authority"]
          + ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
          + ["-out", "@certificate.pem"],
        in: directory, names: [])
    case .leaf(.expired, let names):
      return try await make(for: names, from: "20200101000000Z", to: "20200102000000Z", in: directory)
    case .leaf(.notYetValid, let names):
      return try await make(for: names, from: "20900101000000Z", to: "20900102000000Z", in: directory)
    case .leaf(let kind, let names):
      var arguments = ["req", "-x509", "-days", "30"] + Self.newKey + Self.subject(names)
      if kind != .selfSigned {
        let authority = try await get(kind == .valid ? .authority : .otherAuthority)
        arguments += ["-CA", authority.certificateFile, "-CAkey", authority.keyFile]
      }
      return try await Self.openssl(arguments + ["-out", "@certificate.pem"], in: directory, names: names)
    }
  }

  /// Makes a certificate with both dates. Only `openssl ca` sets both dates, and it needs a configuration
  /// file.
  private func make(
    for names: [String], from start: String, to end: String, in directory: String
  ) async throws -> TestCertificate {
    let authority = try await get(.authority)
    try TextFile.write("", to: "\(directory)/index")
    try TextFile.write(
      """
      [ca]
      default_ca = authority
      [authority]
      database = \(directory)/index
      new_certs_dir = \(directory)
      rand_serial = yes
      default_md = sha256
      policy = policy
      copy_extensions = copy
      [policy]
      commonName = supplied
      """, to: "\(directory)/ca.conf")
    _ = try await Self.openssl(
      ["req"] + Self.newKey + Self.subject(names) + ["-out", "@request.pem"], in: directory, names: names)
    return try await Self.openssl(
      ["ca", "-batch", "-notext", "-config", "@ca.conf", "-in", "@request.pem", "-out", "@certificate.pem"]
        + ["-cert", authority.certificateFile, "-keyfile", authority.keyFile]
        + ["-startdate", start, "-enddate", end],
      in: directory, names: names)
  }

  private static let newKey = [
    "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "@key.pem",
  ]

  private static func subject(_ names: [String]) -> [String] {
    let alternatives = names.map { IPAddress($0) == nil ? "DNS:\($0)" : "IP:\($0)" }
    return [
      "-subj", "/CN=\(names[0])", "-addext", "subjectAltName=" + alternatives.joined(separator: ","),
      "-addext", "basicConstraints=critical,CA:FALSE",
    ]
  }

  /// Runs openssl(1). An argument that begins with "@" names a file in the directory.
  private static func openssl(
    _ arguments: [String], in directory: String, names: [String]
  ) async throws -> TestCertificate {
    let paths = arguments.map { $0.hasPrefix("@") ? "\(directory)/\($0.dropFirst())" : $0 }
    try await ChildProcess.run("openssl", paths, in: directory)
    return TestCertificate(
      certificateFile: "\(directory)/certificate.pem", keyFile: "\(directory)/key.pem", names: names)
  }
}
