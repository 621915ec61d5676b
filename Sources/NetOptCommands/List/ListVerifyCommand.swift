import NetOpt
import NetOptCore
import NetOptRouting

/// `netopt iplist verify`: verifies the signature of a list.
struct ListVerifyCommand: Command {
  let declaration = CommandDeclaration(
    name: "iplist verify",
    summary: "verify the signature of an IP list",
    details: """
      Verifies that a trusted key has signed an IP list. The signature is in FILE.minisig unless --signature \
      names another file, and has the format of minisign. The exit code is 1 when verification fails, and 65 \
      when the command cannot read a file or the signature file has no valid format. The command does not \
      check the content of the list; use netopt iplist check for this.
      """,
    operands: "FILE", operandCount: 1...1,
    options: [
      OptionGroup("Verifying", [ClientOptions.trustedKey, ListSignCommand.signature]),
      OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt iplist verify --trusted-key minisign.pub iplist.json", "verifies with the key in a file"),
      .init(
        "netopt iplist verify --trusted-key RWRfPJTkYCuQ4unCe4sZbNIGq2XxcAGfYaz7MS0k7lxSencIssLLgdyo iplist.json",
        "verifies with a key"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    let file = arguments.operands[0]
    let keys = try ClientOptions.trustedKeys(arguments)
    if keys.isEmpty {
      throw UsageError("no key is trusted; give one with --trusted-key or NETOPT_TRUSTED_KEYS")
    }
    let signatureFile = arguments.value(of: ListSignCommand.signature) ?? ListReader.signatureFile(of: file)
    var json: JSONValue = [
      "schema_version": 1, "file": .string(file), "signature": .string(signatureFile),
    ]
    let signature: MinisignSignature
    let bytes: [UInt8]
    do throws(NetOptError) {
      bytes = try context.read(file, upTo: EndpointList.maximumBytes, for: .list)
      guard bytes.count <= EndpointList.maximumBytes else {
        throw NetOptError(
          .invalidList, phase: .list,
          "\(file): is larger than \(EndpointList.maximumBytes) bytes, the maximum size of an IP list")
      }
      signature = try MinisignSignature(
        context.read(signatureFile, upTo: 16 * 1024, for: .list), file: signatureFile)
    } catch {
      if arguments.has(.json) { try context.print(Self.finish(&json, nil, nil, error)) }
      throw error
    }
    let key: MinisignPublicKey
    do throws(NetOptError) {
      key = try signature.verify(bytes, of: file, by: keys)
    } catch {
      if arguments.has(.json) { try context.print(Self.finish(&json, signature, nil, error)) }
      context.say(error.message)
      return error.code == .invalidSignature ? .failed : ExitCode(error)
    }
    if arguments.has(.json) {
      try context.print(Self.finish(&json, signature, key, nil))
    } else {
      try context.output.write(Self.text(file, signature))
    }
    return .ok
  }

  private static func text(_ file: String, _ signature: MinisignSignature) -> String {
    Text.lines([
      Text.printable("\(file): signed by the key \(signature.keyName) (\(signature.algorithm.rawValue))"),
      Text.printable("trusted comment: \(signature.trustedComment)"),
    ])
  }

  /// Appends the result to `json`, and returns the object that `iplist verify --json` prints:
  /// docs/schemas/iplist-verify.schema.json.
  ///
  /// - Parameters:
  ///   - signature: the signature; `nil` if it could not be read.
  ///   - key: the trusted key that made the signature; `nil` if the signature is not valid.
  private static func finish(
    _ json: inout JSONValue, _ signature: MinisignSignature?, _ key: MinisignPublicKey?, _ error: NetOptError?
  ) -> JSONValue {
    json.append("valid", .bool(key != nil))
    json.append("key_id", .optional(signature?.keyName))
    json.append("algorithm", .optional(signature?.algorithm.rawValue))
    // Without a valid signature, anyone may have written the comment. So the output omits it.
    json.append("trusted_comment", .optional(key == nil ? nil : signature?.trustedComment))
    if let error { json.append("error", error.json) }
    return json
  }
}
