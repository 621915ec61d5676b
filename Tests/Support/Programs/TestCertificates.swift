import NetOptTestSupport
import NetOptCore

/// The files of a certificate and its key.
package struct TestCertificate: Sendable, Hashable {
  /// The file with the certificate, in PEM format.
  package let certificateFile: String
  /// The file with the private key, in PEM format.
  package let keyFile: String
  /// The host names and IP addresses in the certificate.
  package let names: [String]

  /// Makes a copy whose certificate file has further certificates after this one, as in the chain that a
  /// server sends.
  ///
  /// - Parameter others: the further certificates, in PEM format.
  package func followed(by others: [String]) throws -> TestCertificate {
    let file = "\(try TemporaryDirectory.make("certificates"))/certificates.pem"
    try TextFile.write(TextFile.read(certificateFile) + others.joined(), to: file)
    return TestCertificate(certificateFile: file, keyFile: keyFile, names: names)
  }
}

/// Makes certificates for tests. The openssl(1) command makes each certificate at its first use. The
/// certificate then serves all tests of the process. Keys are P-256; making a key takes about 10 ms.
package actor TestCertificates {
  /// The kinds of certificate.
  package enum Kind: Hashable, Sendable {
    /// Signed by the tests' own authority (`authorityFile`), valid now.
    case valid
    /// Signed by the tests' own authority, valid only on the first day of 2020.
    case expired
    /// Signed by the tests' own authority, valid only on the first day of 2090. To a client whose clock was
    /// set back, a valid certificate looks like this.
    case notYetValid
    /// Signed with its own key, valid now.
    case selfSigned
    /// Signed by another authority that has the same name as the tests' own, valid now.
    case otherAuthority
  }

  /// What `make` can make: one of the two authorities, or a certificate of a kind for names.
  private enum Wanted: Hashable {
    case authority
    case otherAuthority
    case leaf(Kind, [String])
  }

  private static let shared = TestCertificates()

  /// The tasks that make or have made the certificates.
  private var made: [Wanted: Task<TestCertificate, any Error>] = [:]

  /// The path of the file with the certificate of the tests' own authority. A client that trusts this file
  /// accepts certificates of the kind `valid`.
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

  /// Returns a certificate; makes it if nobody has asked for it before.
  private func get(_ wanted: Wanted) async throws -> TestCertificate {
    let task = made[wanted] ?? Task { try await make(wanted) }
    made[wanted] = task
    return try await task.value
  }

  /// Makes a certificate in a new directory.
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

  /// Makes a certificate that is valid between two dates, in the format YYYYMMDDHHMMSSZ. Only `openssl ca`
  /// can set both dates, and it needs a configuration file.
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

  /// The arguments that make openssl(1) write a new P-256 key to `key.pem`.
  private static let newKey = [
    "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "@key.pem",
  ]

  /// The arguments that set the names in a certificate of a server.
  private static func subject(_ names: [String]) -> [String] {
    let alternatives = names.map { IPAddress($0) == nil ? "DNS:\($0)" : "IP:\($0)" }
    return [
      "-subj", "/CN=\(names[0])", "-addext", "subjectAltName=" + alternatives.joined(separator: ","),
      "-addext", "basicConstraints=critical,CA:FALSE",
    ]
  }

  /// Runs openssl(1), which writes a certificate and its key. In the place of an argument `@NAME`, openssl(1)
  /// gets the path of the file NAME in the directory.
  private static func openssl(
    _ arguments: [String], in directory: String, names: [String]
  ) async throws -> TestCertificate {
    let paths = arguments.map { $0.hasPrefix("@") ? "\(directory)/\($0.dropFirst())" : $0 }
    try await ChildProcess.run("openssl", paths, in: directory)
    return TestCertificate(
      certificateFile: "\(directory)/certificate.pem", keyFile: "\(directory)/key.pem", names: names)
  }
}
