import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting

/// `netopt iplist update`: fetches a newer issue of a list and replaces the file.
struct ListUpdateCommand: Command {
  let declaration = CommandDeclaration(
    name: "iplist update",
    summary: "fetch a newer version of an IP list and replace the list",
    details: """
      Requests a newer version of the IP list from the URL in the refresh member of the list, and replaces \
      the file atomically: a program that opens the file finds the old list or the new one. The new list \
      must satisfy all rules, must not have expired, and must have a higher serial. If a key is trusted or \
      the list has a signature file, the command fetches the signature too, and replaces it together with \
      the list.

      The exit code is 1 when the command got no valid list from the URL or could not write it. In this case \
      the file is unchanged, unless the message says otherwise.
      """,
    operands: "[FILE]", operandCount: 0...1,
    options: [
      OptionGroup("Routing", ClientOptions.routing.options),
      OptionGroup("Connection", ClientOptions.connection.options), TLSOptions.group,
      OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt iplist update iplist.json", "replaces the list with a newer version"),
      .init(
        "netopt iplist update --trusted-key minisign.pub iplist.json",
        "does the same if the trusted key has signed the new list"),
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    guard let file = arguments.operands.first ?? arguments.value(of: ClientOptions.list) else {
      throw UsageError("FILE is missing: netopt iplist update FILE")
    }
    var configuration = try ClientOptions.configuration(arguments, in: context)
    let options = try ClientOptions.requestOptions(arguments)
    let reader = ListReader(
      trustedKeys: configuration.trustedKeys, allowPrivateAddresses: configuration.allowPrivateAddresses)
    let old = try reader.file(file, at: context.now(), allowExpired: true)
    guard let url = old.list.refresh?.url else {
      throw NetOptError(
        .invalidList, phase: .list, "\(file): $.refresh: is missing; it gives the URL of newer versions")
    }
    let signatureFile = ListReader.signatureFile(of: file)
    let signature = try ListReader.signature(signatureFile)
    // The signature of the old list, if no key is trusted. Nothing verifies it: the command only requires
    // that the new signature names the same key.
    let unverified =
      try reader.trustedKeys.isEmpty ? signature.map { try MinisignSignature($0, file: signatureFile) } : nil
    if unverified != nil {
      context.say(
        "note: \(file) has a signature, but no key is trusted: the signature is replaced, not verified")
    }
    configuration.list = .list(old.list)
    configuration.listUpdates.keepCopy = false
    configuration.probing.atStart = false
    let result = try await context.withClient(configuration) { client in
      let fetch = ListFetch(isSigned: signature != nil || !reader.trustedKeys.isEmpty) {
        (request) throws(NetOptError) in
        var request = request
        request.options = options
        return try await client.execute(request)
      }
      return await Self.update(file, old, from: url, fetch, reader, unverified, at: context.now())
    }
    let report = ListUpdateReport(file: file, url: url, old: old.list, result: result)
    if arguments.has(.json) { try context.print(report.json) } else { try context.output.write(report.text) }
    guard case .failure(let error) = result else { return .ok }
    let present = try? FileBytes.read(file, upTo: EndpointList.maximumBytes, as: "the IP list", in: .list)
    context.say(present == old.bytes ? "\(error.message); \(file) is unchanged" : error.message)
    return .failed
  }

  /// Fetches the list and its signature, checks them, and replaces the file if the fetched list is newer.
  ///
  /// - Parameters:
  ///   - old: the list in the file.
  ///   - unverified: the signature of the old list, if no key is trusted; `nil` if a key is trusted or the
  ///     old list has no signature.
  /// - Returns: the new list; `nil` if the file is unchanged, because the fetched list is the list in the
  ///   file, or because another process has replaced the file by a list that is at least as new.
  private static func update(
    _ file: String, _ old: VerifiedList, from url: HTTPURL, _ fetch: ListFetch, _ reader: ListReader,
    _ unverified: MinisignSignature?, at now: Date
  ) async -> Result<EndpointList?, NetOptError> {
    do throws(ListFetch.Failure) {
      guard case .copy(let copy) = try await fetch.list(from: url, unless: nil) else { return .success(nil) }
      do throws(NetOptError) {
        let new = try reader.check(
          copy.list, signature: copy.signature, name: url.shown, at: now)
        // Without trusted keys, the command does not verify the new signature. It only requires that the new
        // and the old signature name the same key.
        if let unverified, let signature = copy.signature {
          let key = try MinisignSignature(signature, file: "\(url.shown).minisig").keyName
          guard key == unverified.keyName else {
            throw NetOptError(
              .invalidSignature, phase: .list,
              "\(url.shown).minisig is by the key \(key), but the signature of \(file) is by the key \(unverified.keyName); if this is correct, name the new key with --trusted-key"
            )
          }
        }
        guard try ListAcceptance.isNewer(new.list, than: old.list, from: url.shown) else {
          return .success(nil)
        }
        return .success(try reader.replace(file, by: new, at: now) ? new.list : nil)
      } catch {
        return .failure(error)
      }
    } catch {
      return .failure(error.error)
    }
  }
}
