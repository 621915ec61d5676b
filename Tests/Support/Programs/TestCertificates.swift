import NetOptTestSupport
import NetOptCore

/// A certificate with its key, in files.
package struct TestCertificate: Sendable, Hashable {
  /// The certificate, PEM.
  package let certificateFile: String
  /// The private key, PEM.
  package let keyFile: String
  /// The names and addresses that it is for.
  package let names: [String]

  /// The same certificate with others behind it, as a server sends them.
  ///
  /// - Parameter others: certificates, PEM.
  package func followed(by others: [String]) throws -> TestCertificate {
    let file = "\(try TemporaryDirectory.make("certificates"))/certificates.pem"
    try TextFile.write(TextFile.read(certificateFile) + others.joined(), to: file)
    return TestCertificate(certificateFile: file, keyFile: keyFile, names: names)
  }
}

/// Certificates for tests, made with the openssl(1) command when they are first asked for, and kept as long as the
/// test process runs. Keys are P-256; each takes some 10 ms.
package actor TestCertificates {
  /// The kinds of certificate.
  package enum Kind: Hashable, Sendable {
    /// Signed by the private authority, valid now.
    case valid
    /// Signed by the private authority, valid on the first day of 2020 alone.
    case expired
    /// Signed by the private authority, valid from 2090 on: what a client sees whose clock was set back.
    case notYetValid
    /// Signed by its own key, valid now.
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

  /// The file with the private authority's certificate: what `--cacert` wants.
  package static func authorityFile() async throws -> String {
    try await shared.get(.authority).certificateFile
  }

  /// A certificate for some names or addresses, always the same one for the same wish.
  ///
  /// - Parameters:
  ///   - kind: what is right or wrong with it.
  ///   - names: host names and IP addresses; the first one is its common name as well.
  /// - Precondition: there is a name.
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

  /// Only `openssl ca` sets both dates; it wants a configuration file.
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

  /// Runs openssl(1); an argument that begins with "@" is a file in the directory.
  private static func openssl(
    _ arguments: [String], in directory: String, names: [String]
  ) async throws -> TestCertificate {
    let paths = arguments.map { $0.hasPrefix("@") ? "\(directory)/\($0.dropFirst())" : $0 }
    try await ChildProcess.run("openssl", paths, in: directory)
    return TestCertificate(
      certificateFile: "\(directory)/certificate.pem", keyFile: "\(directory)/key.pem", names: names)
  }
}
