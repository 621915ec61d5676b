import NetOpt
import NetOptCaching
import NetOptCore

/// `netopt cache explain`: explains which stored responses match a request, how the cache handles the
/// request, and whether it stores the response.
struct CacheExplainCommand: Command {
  private static let offline = Option(
    "offline", "do not send the request; show the stored entries and the decision")

  let declaration = CommandDeclaration(
    name: "cache explain",
    summary: "explain how the cache handles a request",
    details: """
      Shows which entries the cache has for a URL and whether they are fresh, when and why the cache evicted \
      an entry, how the cache handles the request, and whether the cache stores the response. For each fact, \
      it prints the rule and the section of the RFC that contains the rule.

      The command sends the request, unless a stored response answers it. It does not change the cache. With \
      --offline it does not send the request.
      """,
    operands: "URL", operandCount: 1...1,
    options: [
      OptionGroup("Request", RequestArguments.options), CacheArguments.group,
      OptionGroup("Output", [offline, .json]), OptionGroup("Signing", RequestSigning.options),
      ClientOptions.routing, ClientOptions.connection, TLSOptions.group,
    ],
    examples: [
      .init(
        "netopt cache explain --cache ~/.cache/netopt https://api.example.com/items",
        "explains why the response is fresh, stale, or not stored")
    ])

  func run(_ arguments: Arguments, in context: CommandContext) async throws -> ExitCode {
    var caching = try CacheArguments(arguments)
    if caching.mode == nil || caching.mode == .off { caching.mode = .http }
    guard var cache = caching.configuration else {
      throw UsageError("no cache is configured; give --cache DIR")
    }
    let request = try RequestArguments.request(arguments, isHead: false, in: context)
    let signing = try RequestSigning.configuration(arguments, request)
    var configuration = try ClientOptions.configuration(arguments, in: context)
    var explanation = try await CacheExplanation.of(
      request, cache, signing: signing, tls: configuration.tls, list: try configuration.listInUse()
    ) {
      context.say("warning: \($0.message)")
    }
    if !arguments.has(Self.offline) {
      // The client gets a memory cache with the entries of the disk cache, so that the command does not
      // change the disk cache.
      cache.directory = nil
      cache.entries = explanation.entries
      configuration.cache = cache
      configuration.signing = signing
      var asked = request
      // Does not follow redirects, because the explanation is about the response to this URL.
      asked.options.maxRedirects = 0
      try await context.withClient(configuration) { [asked] client in
        explanation.response = try await client.execute(asked)
      }
    }
    if arguments.has(.json) {
      try context.print(explanation.json)
    } else {
      try context.output.write(Text.lines(explanation.lines.map(Text.printable)))
    }
    return .ok
  }
}
