package import NetOptCaching
public import NetOptCore
import NetOptEngine
public import NetOptRouting
public import NetOptSigning

/// How a `NetOptClient` works. Every value has a default that is right for most services. A number that makes no sense is refused when the
/// client is made, with `invalidConfiguration`.
public struct ClientConfiguration: Sendable {
  /// Where the list of server IPs comes from.
  public enum ListSource: Sendable {
    /// The list compiled into the library: public services with stable addresses.
    case builtIn
    /// None: every request goes over DNS.
    case none
    /// A file. It is read when the client is made, and again when it changes.
    case file(String)
    /// A list that has been read already.
    case list(EndpointList)
  }

  /// How the list is kept up to date.
  public struct ListUpdates: Sendable {
    /// Whether newer issues are looked for at the URL that the list names in `refresh`, at the first start of a day
    /// and then as often as it says. Default: yes.
    public var refresh = true
    /// Whether the last good copy of what was found is kept, and used when its serial is higher than that of the
    /// configured list. Default: yes.
    public var keepCopy = true
    /// Whether a list from a file is read again when the file changes. Default: yes.
    public var watchFile = true
    /// Where last good copies are kept. Default: `netopt/lists` in `$XDG_STATE_HOME`, or in `~/.local/state`.
    public var stateDirectory: String?
  }

  /// Where the list of server IPs comes from. Default: `builtIn`.
  public var list = ListSource.builtIn
  /// How the list is kept up to date.
  public var listUpdates = ListUpdates()
  /// The keys of those who may issue lists. When there are any, a list from a file or a URL is used only when one of
  /// them has signed it: `FILE.minisig` is beside the file, `URL.minisig` beside the URL. Default: none, and signatures
  /// are not looked at.
  public var trustedKeys: [MinisignPublicKey] = []
  /// Whether a list from a file or a URL may name private and loopback addresses. Default: no.
  public var allowPrivateAddresses = false
  /// How endpoints are ranked.
  public var routing = RoutingConfiguration()
  /// How endpoints are probed.
  public var probing = Probing()
  /// Where the ranking is kept from run to run, so that a first request need not wait for probes. Default: in the state
  /// directory. It is read when the client is made, and written when the client is shut down, and every five minutes
  /// while it is in use; by a client that has sent no request along its list, not at all.
  public var rankingHistory = History.stateDirectory
  /// How names are looked up.
  public var dns = DNS()
  /// What is trusted.
  public var tls = TLS()
  /// How many connections there are, and how long they are kept.
  public var connections = Connections()
  /// Which proxy is used. Default: the one that the environment names.
  public var proxy = Proxy.environment
  /// The value of `User-Agent` for requests that bring none; empty for not sending it. Default: `netopt/` and the version.
  public var userAgent = "netopt/\(NetOptVersion.string)"
  /// How requests are signed; `nil` for not at all, the default.
  public var signing: Signing?
  /// How responses are cached; `nil`, the default, for not at all: requests then pass by no cache.
  public var cache: Cache?
  /// Interceptors around each call, outermost first, within netopt's own events and redirects: each hop of a
  /// redirected call passes through them, once for all of its attempts.
  public var interceptors: [any Interceptor] = []
  /// Who is told of calls.
  public var observers: [any CallObserver] = []
  /// Who is told what becomes of the list.
  public var listObservers: [any ListObserver] = []
  /// Who is told of what goes wrong beside calls and keeps none from being made, such as a file that cannot be written.
  /// Called on any thread but the event loop's; it must not block. Default: nobody.
  public var warningHandler: (@Sendable (NetOptError) -> Void)?

  /// Where rankings are kept from run to run: one file for each network that this machine was in, at most 16 of them, no
  /// entry older than a day. A file that cannot be read or written, or is none of netopt's, is ignored with a warning.
  public enum History: Hashable, Sendable {
    /// `$XDG_STATE_HOME/netopt`, by default `~/.local/state/netopt`; nowhere when neither variable is set.
    case stateDirectory
    /// This directory, which is made when there is something to be kept.
    case directory(String)
    /// Nowhere.
    case none
  }

  /// How endpoints are probed.
  public struct Probing: Sendable {
    /// Whether the list's endpoints are probed when the client is made. A host of a list of more than 256 endpoints
    /// is probed when it is first used. Default: yes.
    public var atStart = true
    /// Whether probing goes on at a low rate while requests are sent: endpoints that failed, as soon as their time is over,
    /// those with a wrong certificate after 1 s to 1 min, and each other one every few minutes. A client that sends none
    /// costs nothing. Default: yes.
    public var inBackground = true
    /// How; `nil` means TLS, and TCP for port 80.
    public var method: ProbeMethod?
    /// How long probing a host may take, 1 ms to 1 h. Default: 1 s.
    public var budget = Duration.seconds(1)
    /// How many of the probes that begin together are under way at once, 1 to 65,536. Default: 64.
    public var concurrency = 64
    /// How long the first request to a host waits for the first answer, up to 1 h. Default: 100 ms.
    public var firstRequestWait = Duration.milliseconds(100)
  }

  /// How names are looked up.
  public struct DNS: Sendable {
    /// The name servers, as `ip`, `ip:port` or `[ip]:port`. Default: the system's.
    public var servers: [String] = []
    /// How long a server is given, 1 ms to 60 s. Default: 500 ms.
    public var timeout = Duration.milliseconds(500)
    /// How often each server is asked, 1 to 10 times. Default: 2.
    public var tries = 2
  }

  /// What is trusted.
  public struct TLS: Sendable {
    /// A PEM file with the authorities to trust instead of the system's, of servers and of a proxy over TLS.
    public var caFile: String?
  }

  /// How many connections there are, and how long they are kept.
  public struct Connections: Sendable {
    /// The most of one origin to one endpoint, at least 1; more requests wait. Default: 16.
    public var perEndpoint = 16
    /// The most in all, at least 1. Default: 256.
    public var total = 256
    /// The most idle ones, at least 0. Default: 64.
    public var idle = 64
    /// How long one may have been idle to be used again, 1 s to 365 days. Default: 55 s, below what load balancers allow.
    public var idleAge = Duration.seconds(55)
    /// How long one may be used at all, 1 s to 365 days. Default: no limit.
    public var lifetime: Duration?
    /// How many bytes of a response's body are held for a consumer that does not read, 1 to 1 GiB. Default: 512 KiB.
    public var bodyBuffer = 512 * 1024
  }

  /// How requests are signed: each attempt afresh, right before it is sent.
  public struct Signing: Sendable {
    /// Who signs.
    public var signer: RequestSigner
    /// The hosts whose requests are signed, in lower case. A redirect to another host is followed without a signature; one from another
    /// host to one of these is not followed, but is the answer.
    public var hosts: Set<String>
    /// Whether a `Date` that came without TLS may correct the clock. Anybody on the path can then have requests signed for
    /// another time, at most a day away. Default: no.
    public var trustsPlainDates = false

    /// Makes a setting.
    public init(signer: RequestSigner, hosts: Set<String>) {
      self.signer = signer
      self.hosts = hosts
    }
  }

  /// How responses are cached.
  public struct Cache: Sendable {
    /// How the cache is used for requests whose own options do not say it. Default: as RFC 9111 says.
    public var options = CacheOptions.http
    /// How many bytes are kept in memory, 0 to 1 PiB. Default: 64 MiB.
    public var maxBytes = 64 << 20
    /// Where entries are kept on disk too, to be found by other processes and after a restart: a directory of this user's,
    /// which is made when it is not there. What goes wrong with it goes to `warningHandler`, and requests go on without it.
    /// Default: nowhere.
    public var directory: String?
    /// How many bytes are kept on disk, 0 to 1 PiB. Default: 1 GiB.
    public var maxDiskBytes = 1 << 30
    /// How long an entry is kept at most, up to 36,500 days; it says nothing about freshness. Default: as long as there is room.
    public var maxAge: Duration?
    /// How many bytes the body of an entry may have, 0 to 1 PiB; a larger one passes and is not stored. Default: 4 MiB.
    public var maxEntryBytes = 4 << 20
    /// How many bytes of bodies that are on their way are kept in all, to be stored at their end, 0 to 1 PiB. What comes
    /// beyond passes and is not stored. Default: 32 MiB.
    public var maxPendingBytes = 32 << 20
    /// For how long after it went stale a response may be used when the origin cannot be reached and nothing forbids it
    /// (RFC 9111, section 4.2.4), up to 36,500 days. Default: a day; zero for not at all.
    public var staleWhenUnreachable = Duration.seconds(86_400)
    /// Folders with resources that are shipped with the service, each with an `index.json`
    /// (docs/schemas/seed-pack.schema.json). They are read only, count nowhere, and lose to whatever is newer. With
    /// `trustedKeys` their indexes have to be signed by one of them.
    public var seedPacks: [String] = []
    /// The names of the request fields that tell for whom a request speaks. Requests that differ in one of them are kept apart as
    /// partitions are: what one user was answered no other one sees, also where the answer may be stored. Fields whose names speak of
    /// secrets (`X-Client-Secret`, `DD-API-KEY`) are among them without being listed. A redirect to another origin leaves all of
    /// them behind. Add the fields of your services to `usualCredentialFields`. Case does not matter.
    public var credentialFields = usualCredentialFields
    /// The names of request fields that only seem to speak of secrets: requests that differ in one of them share what is stored, and a
    /// redirect takes them along. Case does not matter. Default: `Idempotency-Key`, `X-Idempotency-Key` and `Sec-WebSocket-Key`.
    public var harmlessFields = CredentialFields.harmless
    /// What is stored from the start.
    package var entries: [CacheEntry] = []
    /// Has freed memory given back to the system; `nil` leaves that to the program.
    package var heap: (any ProcessHeap)?
    /// The date: milliseconds since 1970.
    package var now: @Sendable () -> Int64 = { WallClock.now() }

    /// `Authorization`, `Cookie`, and fields in which gateways tell for whom a request is made, such as `X-Forwarded-User`; docs/caching.md
    /// lists them.
    public static let usualCredentialFields = CredentialFields.usual

    /// What `credentialFields` and `harmlessFields` say. A redirect leaves the usual ones behind also where they do not tell users apart.
    func credentials(orUsual: Bool = false) -> CredentialFields {
      CredentialFields(
        orUsual ? credentialFields.union(CredentialFields.usual) : credentialFields, harmless: harmlessFields)
    }

    /// Makes the defaults.
    public init() {}
  }

  /// Which proxy is used.
  public enum Proxy: Hashable, Sendable {
    /// The one that `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` name when the client is made.
    case environment
    /// None, whatever the environment says.
    case none
    /// This one, by its URL: `http://host:port`, `https://…`, `socks5h://…`.
    case url(String)
  }

  /// Makes the defaults.
  public init() {}
}

extension ClientConfiguration.Proxy: CustomStringConvertible, CustomReflectable {
  /// Which proxy, of a URL scheme, host and port: its user name and password are not shown.
  public var description: String {
    switch self {
    case .environment: "environment"
    case .none: "none"
    case .url(let url): "url(\(ProxyURL.shown(url)))"
    }
  }

  /// Has no children: a dump must not show the password.
  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .enum) }
}
