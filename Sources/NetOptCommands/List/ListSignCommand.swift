import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptCrypto
import NetOptRouting

/// `netopt iplist sign`: checks a list, signs it, and writes the signature in the format of minisign.
struct ListSignCommand: Command {
  private static let key = Option(
    "key", short: "s", takes: .required("FILE"),
    "secret key; default: minisign.key in MINISIGN_CONFIG_DIR or ~/.minisign",
    environment: "NETOPT_SIGN_KEY")
  private static let passwordFile = Option(
    "password-file", takes: .required("FILE"),
    "read the password of the key from the first line of FILE; default: NETOPT_KEY_PASSWORD, else ask for it")
  static let signature = Option(
    "signature", short: "x", takes: .required("FILE"), "file of the signature; default: FILE.minisig")
  private static let legacy = Option(
    "legacy", short: "l", "sign the file instead of its digest, for minisign before version 0.6")
  private static let comment = Option(
    "comment", short: "c", takes: .required("TEXT"), "comment that the signature does not cover")
  private static let trustedComment = Option(
    "trusted-comment", short: "t", takes: .required("TEXT"),
    "comment that the signature covers; default: the time and the name of the file")

  let declaration = CommandDeclaration(
    name: "iplist sign",
    summary: "sign an IP list in the format of minisign",
    details: """
      Checks an IP list and writes its signature to FILE.minisig. An older signature is replaced. The keys \
      are minisign keys (minisign -G creates them), and minisign -V verifies the signature. The command does \
      not sign a list with faults, because no client would use it.

      The command takes the password of an encrypted key from --password-file, or else from \
      NETOPT_KEY_PASSWORD. Otherwise it asks for the password, or reads it from standard input if standard \
      input is not a terminal. The password check takes 1 second and 1 GiB of memory.
      """,
    operands: "FILE", operandCount: 1...1,
    options: [
      OptionGroup("Signing", [key, passwordFile, signature, legacy, comment, trustedComment]),
      OptionGroup("Checking", [ClientOptions.allowPrivate]), OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt iplist sign iplist.json", "signs with the minisign key in its default location"),
      .init(
        "netopt iplist sign --key list.key --password-file password iplist.json",
        "signs without asking for the password"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let file = arguments.operands[0]
    if file == "-" { throw UsageError("iplist sign cannot sign standard input; give the name of a file") }
    let bytes = try context.read(file, upTo: EndpointList.maximumBytes, for: .list)
    let rules = ListRules(
      allowPrivateAddresses: arguments.has(ClientOptions.allowPrivate), now: context.now())
    let list = try EndpointList(bytes, file: file, rules: rules)
    let key = try secretKey(arguments, in: context)
    let isLegacy = arguments.has(Self.legacy)
    let name = file.split(separator: "/").last.map(String.init) ?? file
    let time = Int64(context.now().timeIntervalSince1970)
    let signature = try key.signature(
      of: bytes, isLegacy ? .legacy : .prehashed,
      untrustedComment: arguments.value(of: Self.comment) ?? "signature from netopt iplist sign",
      trustedComment: arguments.value(of: Self.trustedComment)
        ?? "timestamp:\(time)\tfile:\(name)" + (isLegacy ? "" : "\thashed"))
    let target = arguments.value(of: Self.signature) ?? ListReader.signatureFile(of: file)
    try FileBytes.replace(
      target, with: Array(signature.text.utf8), mode: 0o644, as: "the signature", in: .list)
    if arguments.has(.json) {
      try context.print([
        "schema_version": 1, "file": .string(file), "signature": .string(target),
        "key_id": .string(signature.keyName), "public_key": .string(key.publicKey.description),
        "algorithm": .string(signature.algorithm.rawValue),
        "trusted_comment": .string(signature.trustedComment), "serial": .integer(list.serial),
      ])
    } else {
      try context.print(
        Text.printable("\(target): signature of serial \(list.serial) by the key \(signature.keyName)"))
    }
    return .ok
  }

  /// Reads the secret key. Asks for the password only if the key is encrypted.
  private func secretKey(
    _ arguments: Arguments, in context: CommandContext
  ) throws -> MinisignSecretKey {
    guard let file = arguments.value(of: Self.key) ?? Self.usualKey(context) else {
      throw UsageError("there is no secret key; give one with --key FILE")
    }
    let bytes = try context.read(file, upTo: 16 * 1024, for: .list)
    return try MinisignSecretKey(bytes, file: file) { () throws(NetOptError) in
      try Self.password(arguments, of: file, in: context)
    }
  }

  /// Returns the path of the secret key that minisign uses when the user names none; `nil` without a home
  /// directory.
  private static func usualKey(_ context: CommandContext) -> String? {
    if let directory = context.variable("MINISIGN_CONFIG_DIR") { return directory + "/minisign.key" }
    return context.variable("HOME").map { $0 + "/.minisign/minisign.key" }
  }

  /// Returns the password of an encrypted key: from `--password-file`, from `NETOPT_KEY_PASSWORD`, or from
  /// standard input.
  ///
  /// - Parameter key: the name of the key's file, for the prompt.
  private static func password(
    _ arguments: Arguments, of key: String, in context: CommandContext
  ) throws(NetOptError) -> SecretBytes {
    if let file = arguments.value(of: passwordFile) {
      return firstLine(try context.read(file, upTo: 4096, for: .list))
    }
    if let password = context.variable("NETOPT_KEY_PASSWORD") {
      return SecretBytes(copying: Array(password.utf8))
    }
    if context.input.isTerminal { context.tell("Password for \(Text.printable(key)): ") }
    defer { if context.input.isTerminal { context.tell("\n") } }
    do throws(InputError) {
      return firstLine(
        try context.input.withoutEcho { () throws(InputError) in
          var line: [UInt8] = []
          while line.count < 4096, !line.contains(0x0a) {
            let piece = try context.input.read(upTo: 4096)
            if piece.isEmpty { break }
            line += piece
          }
          return line
        })
    } catch {
      throw NetOptError(.cancelled, phase: .list, "cannot read the password")
    }
  }

  /// Returns the bytes before the first LF or CRLF.
  private static func firstLine(_ bytes: [UInt8]) -> SecretBytes {
    let line = bytes.prefix { $0 != 0x0a }
    return SecretBytes(copying: Array(line.last == 0x0d ? line.dropLast() : line))
  }
}
