import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptRouting

/// `netopt iplist update`: fetches the next issue of a list and replaces the file.
struct ListUpdateCommand: Command {
  let declaration = CommandDeclaration(
    name: "iplist update",
    summary: "fetch the next issue of an IP list and put it in the list's place",
    details: """
      Asks the URL that a list names in refresh for a newer issue and puts it in the place of the file, at once: whoever \
      opens the file finds the old list or the new one. The new list must keep all rules, must not have expired, and \
      must have a higher serial. When a key is trusted, or the list has a signature beside it, the signature is fetched \
      too, and replaced with the list.

      Exit code 1 says that there was no good list, or that it could not be written; unless it says otherwise, the file \
      is then as it was.
      """,
    operands: "[FILE]", operandCount: 0...1,
    options: [
      OptionGroup("Routing", ClientOptions.routing.options),
      OptionGroup("Connection", ClientOptions.connection.options),
      OptionGroup("Output", [.json]),
    ],
    examples: [
      .init("netopt iplist update iplist.json", "replaces the list by its next issue"),
      .init("netopt iplist update --trusted-key minisign.pub iplist.json", "the same, if it is signed"),
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
        .invalidList, phase: .list, "\(file): $.refresh: is missing; it names the URL of newer issues")
    }
    let signatureFile = ListReader.signatureFile(of: file)
    let signature = try ListReader.signature(signatureFile)
    let unverified =
      try reader.trustedKeys.isEmpty ? signature.map { try MinisignSignature($0, file: signatureFile) } : nil
    if unverified != nil {
      context.say(
        "note: \(file) has a signature, but no key is trusted: signatures are replaced, not verified")
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
    context.say(present == old.bytes ? "\(error.message); \(file) is as it was" : error.message)
    return .failed
  }

  /// - Returns: the list that replaced the old list; `nil` when the file did not change.
  private static func update(
    _ file: String, _ old: VerifiedList, from url: HTTPURL, _ fetch: ListFetch, _ reader: ListReader,
    _ unverified: MinisignSignature?, at now: Date
  ) async -> Result<EndpointList?, NetOptError> {
    do throws(ListFetch.Failure) {
      guard case .copy(let copy) = try await fetch.list(from: url, unless: nil) else { return .success(nil) }
      do throws(NetOptError) {
        let new = try reader.check(
          copy.list, signature: copy.signature, name: url.shown, at: now)
        // Without trusted keys, the command does not verify the new signature. But the signature must be by
        // the same key as the old one.
        if let unverified, let signature = copy.signature {
          let key = try MinisignSignature(signature, file: "\(url.shown).minisig").keyName
          guard key == unverified.keyName else {
            throw NetOptError(
              .invalidSignature, phase: .list,
              "\(url.shown).minisig is by the key \(key), and that of \(file) by \(unverified.keyName); if that is right, name the new key with --trusted-key"
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
