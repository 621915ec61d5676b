import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptCrypto
import NetOptRouting

/// `netopt iplist sign`: signs a list in the format of minisign.
struct ListSignCommand: Command {
  private static let key = Option(
    "key", short: "s", takes: .required("FILE"),
    "the secret key; default: minisign.key in MINISIGN_CONFIG_DIR or ~/.minisign",
    environment: "NETOPT_SIGN_KEY")
  private static let passwordFile = Option(
    "password-file", takes: .required("FILE"),
    "read the key's password from the first line of this file; default: NETOPT_KEY_PASSWORD, else ask for it")
  static let signature = Option(
    "signature", short: "x", takes: .required("FILE"), "the signature's file; default: FILE.minisig")
  private static let legacy = Option(
    "legacy", short: "l", "sign the file itself and not its digest, for minisign before version 0.10")
  private static let comment = Option(
    "comment", short: "c", takes: .required("TEXT"), "the comment that is not signed")
  private static let trustedComment = Option(
    "trusted-comment", short: "t", takes: .required("TEXT"),
    "the comment that is signed too; default: the time and the file's name")

  let declaration = CommandDeclaration(
    name: "iplist sign",
    summary: "sign an IP list as minisign does",
    details: """
      Checks a list and writes its signature beside it, to FILE.minisig, in the place of an older one. Keys are those of \
      minisign (minisign -G makes them), and minisign -V verifies the signature. A list with faults is not signed: no \
      client would use it.

      The password of an encrypted key is taken from --password-file, else from NETOPT_KEY_PASSWORD, else it is asked \
      for, or read from standard input when that is no terminal. It takes a second and 1 GiB of memory to check it.
      """,
    operands: "FILE", operandCount: 1...1,
    options: [
      OptionGroup("Signing", [key, passwordFile, signature, legacy, comment, trustedComment]),
      OptionGroup("Checking", [ClientOptions.allowPrivate]), OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt iplist sign iplist.json", "signs with the key of minisign's that is in its usual place"),
      .init(
        "netopt iplist sign --key list.key --password-file password iplist.json",
        "signs without anyone at the keyboard"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let file = arguments.operands[0]
    if file == "-" { throw UsageError("a signature belongs to a file; name it") }
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

  private func secretKey(
    _ arguments: Arguments, in context: CommandContext
  ) throws -> MinisignSecretKey {
    guard let file = arguments.value(of: Self.key) ?? Self.usualKey(context) else {
      throw UsageError("there is no secret key; name one with --key FILE")
    }
    let bytes = try context.read(file, upTo: 16 * 1024, for: .list)
    return try MinisignSecretKey(bytes, file: file) { () throws(NetOptError) in
      try Self.password(arguments, of: file, in: context)
    }
  }

  private static func usualKey(_ context: CommandContext) -> String? {
    if let directory = context.variable("MINISIGN_CONFIG_DIR") { return directory + "/minisign.key" }
    return context.variable("HOME").map { $0 + "/.minisign/minisign.key" }
  }

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
      throw NetOptError(.cancelled, phase: .list, "no password was read")
    }
  }

  private static func firstLine(_ bytes: [UInt8]) -> SecretBytes {
    let line = bytes.prefix { $0 != 0x0a }
    return SecretBytes(copying: Array(line.last == 0x0d ? line.dropLast() : line))
  }
}
