package import NetOptCaching
public import NetOptCore
import NetOptEngine
public import NetOptRouting
public import NetOptSigning

/// The settings of a `NetOptClient`. Every setting has a default that suits most services.
///
/// `NetOptClient.init` throws `invalidConfiguration` when a number is outside its range.
public struct ClientConfiguration: Sendable {
  /// The source of the list of server IPs.
  public enum ListSource: Sendable {
    /// The list compiled into the library: public services with stable addresses. It is for demonstrations.
    /// The client probes a host of this list only when the program sends a request to it.
    case builtIn
    /// No list: every request goes over DNS.
    case none
    /// The file at this path. The client reads the file when it is made, and again when the file changes.
    case file(String)
    /// This list, which the program has read or made itself. The client does not read a signature for it.
    case list(EndpointList)
  }

  /// How the client keeps its list up to date.
  public struct ListUpdates: Sendable {
    /// Whether the client fetches newer issues of the list from the URL in the list's `refresh`: at the first
    /// start of a day (UTC), and then at the interval in `refresh`. Default: yes.
    public var refresh = true
    /// Whether the client saves the newest list that it fetched and accepted (the last good copy). At the
    /// next start it uses this copy if the copy's serial is higher than the configured list's. Default: yes.
    public var keepCopy = true
    /// Whether the client reads a list file again when the file changes. Default: yes.
    public var watchFile = true
    /// The directory for last good copies. Default: `netopt/lists` in `$XDG_STATE_HOME`, or in
    /// `~/.local/state`.
    public var stateDirectory: String?
  }

  /// The source of the list of server IPs. Default: `none`, so a client contacts only the hosts of its
  /// requests.
  public var list = ListSource.none
  /// How the client keeps its list up to date.
  public var listUpdates = ListUpdates()
  /// The public keys of the issuers of lists. With at least one key, the client uses a list from a file or a
  /// URL only if one of the keys signed it. The signature of the list file `FILE` is in `FILE.minisig`; the
  /// signature of a list at a URL is at this URL with `.minisig` appended to the path. Default: no keys, and
  /// the client does not read signatures.
  public var trustedKeys: [MinisignPublicKey] = []
  /// Whether a list from a file or a URL may contain private and loopback addresses. Default: no.
  public var allowPrivateAddresses = false
  /// How the client ranks endpoints.
  public var routing = RoutingConfiguration()
  /// How the client probes endpoints.
  public var probing = Probing()
  /// Where the client saves the ranking from run to run, so that a first request need not wait for probes.
  /// Default: in the state directory.
  ///
  /// The client reads the ranking when it is made. It writes the ranking every five minutes while it is in
  /// use, and when it shuts down. A client that has sent no request along its list writes nothing.
  public var rankingHistory = History.stateDirectory
  /// How the client resolves host names.
  public var dns = DNS()
  /// How connections are secured.
  public var tls = TLS()
  /// How many connections the client opens, and how long it keeps them.
  public var connections = Connections()
  /// The proxy for requests. Default: the proxy that the environment variables name.
  public var proxy = Proxy.environment
  /// The value of `User-Agent` for requests without this field; with an empty string the client sends no
  /// `User-Agent`. Default: `netopt/` and the version.
  public var userAgent = "netopt/\(NetOptVersion.string)"
  /// The values for requests that do not set their own.
  public var defaults = Defaults()
  /// The credentials that the client adds to requests, by host. Default: none.
  public var authorization: [Authorization] = []
  /// The names of the hosts whose cookies the client keeps in memory and sends back, without ports. Other
  /// hosts set no cookies. A cookie for a whole domain goes only to those of its hosts that are named here.
  /// A cookie without `Secure` also goes over plain HTTP, and every cookie to all ports of the host. Over TLS
  /// without verification, no cookies come or go. A request with a `Cookie` field of its own gets no other
  /// cookies. The client does not follow a redirect from a host that is not named here to one that is.
  /// Default: empty, no cookies.
  public var cookieHosts: Set<String> = []
  /// How the client signs requests; `nil`, the default, for no signatures.
  public var signing: Signing?
  /// How the client caches responses; `nil`, the default, for no cache.
  public var cache: Cache?
  /// Interceptors around each call, outermost first. They run inside netopt's reports to observers and inside
  /// its redirects. So each hop of a redirected call passes through them, once for all attempts of the hop.
  /// Default: none.
  public var interceptors: [any Interceptor] = []
  /// Where the client exports traces. `nil` to export none; then a `traceparent` of a request goes to the server
  /// as it is. Default: `nil`.
  public var telemetry: Telemetry?
  /// The observers of calls. Default: none.
  public var observers: [any CallObserver] = []
  /// The observers of the list. Default: none.
  public var listObservers: [any ListObserver] = []
  /// Receives the errors of background work that do not fail a request, such as a file that cannot be
  /// written. The client calls the handler on any thread except the event loop's. The handler must not block.
  /// Default: none.
  public var warningHandler: (@Sendable (NetOptError) -> Void)?

  /// Where the client saves rankings from run to run. There is one file for each network that this machine
  /// was in, and at most 16 files. The client ignores rankings that are older than a day. When it cannot read
  /// or write a file, or a file is not a ranking file of netopt's, the client warns about this file and
  /// ignores it.
  public enum History: Hashable, Sendable {
    /// `$XDG_STATE_HOME/netopt`, by default `~/.local/state/netopt`. When neither `XDG_STATE_HOME` nor `HOME`
    /// is set, the client saves no rankings.
    case stateDirectory
    /// The directory at this path. The client creates it when there is a ranking to save.
    case directory(String)
    /// The client saves no rankings.
    case none
  }

  /// How the client probes endpoints.
  public struct Probing: Sendable {
    /// Whether the client probes the endpoints of the list when it is made, and requests wait for the first
    /// probes. When the list has more than 256 endpoints, or is `ListSource.builtIn`, the client does not
    /// probe all of them at start; it probes a host at the first request to it. Default: yes.
    public var atStart = true
    /// Whether `atStart` includes the hosts to which the program has sent no request yet. If false, the first
    /// request to a host starts the probes of the host.
    package var includesUnusedHosts = true
    /// Whether the client sends background probes, at a low rate, while requests are sent. It probes an
    /// endpoint that failed as soon as its circuit breaker allows it, an endpoint with a wrong certificate
    /// after 1 s to 1 min, and every other endpoint every few minutes. A client that sends no requests sends
    /// no background probes. Default: yes.
    public var inBackground = true
    /// The probe method. Default: `nil`, which means `tls` for `https` and `tcp` for `http`. The list names no
    /// scheme: probes use the scheme of the host's last request, and before the first request `http` for port
    /// 80 and `https` for any other port.
    ///
    /// If the method is `tcp` or `icmp`, background probes use the default method instead. `tcp` and `icmp`
    /// can succeed at an endpoint whose service is down: a middlebox may complete the TCP handshake, and the
    /// machine may reply without the service. For `http` the default method is `tcp`, and its success shows
    /// that the endpoint works. A check of a wrong certificate always uses TLS.
    public var method: ProbeMethod?
    /// The time limit for all probes that start together, such as those of a host, 1 ms to 1 h. Default: 1 s.
    public var budget = Duration.seconds(1)
    /// The maximum number of concurrent probes among those that start together, 1 to 65,536. Default: 64.
    public var concurrency = 64
    /// How long a request waits for the first successful probe of its host, if the host has not answered a
    /// probe yet, 0 s to 1 h. Default: 100 ms.
    public var firstRequestWait = Duration.milliseconds(100)
  }

  /// How the client resolves host names.
  public struct DNS: Sendable {
    /// The name servers, as `ip`, `ip:port` or `[ip]:port`. Default: the system's.
    public var servers: [String] = []
    /// How long the resolver waits for the response of a name server, 1 ms to 60 s. Default: 500 ms.
    public var timeout = Duration.milliseconds(500)
    /// How often the resolver asks each name server before it gives up, 1 to 10 times. Default: 2.
    public var tries = 2
  }

  /// How connections are secured: which servers the client trusts, and which certificate it sends itself
  /// (mutual TLS). Hosts with different settings share neither connections nor TLS sessions.
  public struct TLS: Sendable {
    /// The path of a PEM file with the certificate authorities that the client trusts instead of the
    /// system's, for servers and for a proxy over TLS. The client reads the file again when it changes.
    /// Default: `nil`, the system's authorities.
    public var caFile: String?
    /// The certificate authorities in PEM form, in place of `caFile`. Setting both is an error. Default:
    /// `nil`.
    public var caBytes: [UInt8]?
    /// The path of a PEM file with certificate revocation lists (CRLs; RFC 5280). With it, the client refuses
    /// a certificate if any certificate of its chain is revoked, or has no current list of its issuer in the
    /// file. The client reads the file again when it changes. Default: `nil`, no check.
    public var revocationFile: String?
    /// The oldest version of TLS that the client accepts. Default: TLS 1.2.
    public var minimumVersion = TLSVersion.tls12
    /// The newest version of TLS that the client offers. Default: `nil`, the newest that OpenSSL speaks.
    public var maximumVersion: TLSVersion?
    /// The cipher suites of TLS 1.2 in OpenSSL's form (openssl-ciphers(1)). Default: `nil`, OpenSSL's.
    public var cipherList: String?
    /// The cipher suites of TLS 1.3, separated by colons. Default: `nil`, OpenSSL's.
    public var cipherSuites: String?
    /// The certificate that the client sends to servers that ask for one, and its private key. The client
    /// never sends it to a proxy. Default: `nil`, none.
    public var clientCertificate: ClientCertificate?
    /// The pins by host: the SHA-256 hashes of the public keys (SubjectPublicKeyInfo) that the certificate of
    /// the host may have, as `sha256/BASE64`. Add the pin of a backup key, so that the server can change
    /// keys. The name `*` stands for every host that has no pins of its own here. The pins of a host in the
    /// IP list apply if neither the host nor `*` has pins here. Default: empty.
    public var pins: [String: [String]] = [:]
    /// The settings of individual hosts, by name. They replace all settings here except `pins` and `keyLog`.
    /// Setting `pins`, `hosts` or `keyLog` in them is an error. Default: empty.
    public var hosts: [String: TLS] = [:]
    /// The path of a file to which the client appends the secrets of its TLS connections, so that a program
    /// such as Wireshark can decrypt them. Anybody who reads the file can do the same. The client ignores the
    /// environment variable `SSLKEYLOGFILE`. Default: `nil`, none.
    public var keyLog: String?

    /// Makes the default settings.
    public init() {}
  }

  /// How many connections the client opens, and how long it keeps them.
  public struct Connections: Sendable {
    /// The maximum number of connections to one endpoint for the requests of one origin, 1 to 1,000,000.
    /// Further requests wait for a connection. Default: 16.
    public var perEndpoint = 16
    /// The maximum number of connections in all, 1 to 1,000,000. Default: 256.
    public var total = 256
    /// The maximum number of idle connections that the client keeps, 0 to 1,000,000. Default: 64.
    public var idle = 64
    /// How long a connection may be idle and still carry another request, 1 s to 365 days. Default: 55 s,
    /// less than the idle timeout of load balancers.
    public var idleAge = Duration.seconds(55)
    /// The maximum age of a connection, counted from its opening, at which the client still sends another
    /// request on it, 1 s to 365 days. Default: `nil`, no limit.
    public var lifetime: Duration?
    /// How many bytes of a response body the client buffers while the program does not read them, 1 B to 1
    /// GiB. The transfer pauses when the buffer is full. Default: 512 KiB.
    public var bodyBuffer = 512 * 1024
  }

  /// The values for requests that do not set their own.
  public struct Defaults: Sendable {
    /// The time limit of requests that set none (`RequestOptions.timeout`); `nil` for no limit. 1 ms to
    /// 365 days. Default: 60 s.
    public var timeout = RequestOptions.usualTimeout
    /// Header fields for all requests to all hosts. A field that a request already has stays. A field with
    /// credentials is an error, because it would go to every host: use `authorization`. So is a field that
    /// belongs to one request or connection, such as `Range` or `Idempotency-Key`. Default: none.
    public var headers: HeaderFields = [:]
    /// The URL that `NetOptClient.request` resolves relative URLs against. Its path counts as a folder.
    /// Default: `nil`, and `NetOptClient.request` takes only absolute URLs.
    public var baseURL: HTTPURL?
  }

  /// How the client signs requests. It signs each attempt anew, right before the attempt is sent.
  public struct Signing: Sendable {
    /// The signer of requests.
    public var signer: RequestSigner
    /// The names of the hosts whose requests the client signs, without ports. The client follows a redirect
    /// to a host outside this set, without a signature. It does not follow a redirect from another origin to
    /// a host in this set, but returns the redirect response.
    public var hosts: Set<String>
    /// Whether the `Date` of a response that came without TLS may correct the signer's clock. Anybody on the
    /// path can then make the client sign requests with a time that is wrong by at most a day. Default: no.
    public var trustsPlainDates = false

    /// Makes the settings for a signer, with the default for `trustsPlainDates`.
    public init(signer: RequestSigner, hosts: Set<String>) {
      self.signer = signer
      self.hosts = hosts
    }
  }

  /// How the client caches responses.
  public struct Cache: Sendable {
    /// How the cache handles requests whose own options do not say so. Default: as in RFC 9111.
    public var options = CacheOptions.http
    /// The size limit of the memory cache in bytes, 0 to 1 PiB. Default: 64 MiB.
    public var maxBytes = 64 << 20
    /// The directory of the disk cache, which outlives a restart and which other processes can share. The
    /// directory must belong to this user; the cache creates it if it does not exist. The cache reports
    /// errors of the directory to `warningHandler`, and requests continue without it. Default: `nil`, no disk
    /// cache.
    public var directory: String?
    /// The size limit of the disk cache in bytes, 0 to 1 PiB. Default: 1 GiB.
    public var maxDiskBytes = 1 << 30
    /// How long the cache keeps an entry at most, 0 s to 36,500 days. This limit does not change how long the
    /// entry is fresh. Default: `nil`, no limit except the size of the cache.
    public var maxAge: Duration?
    /// The size limit of the body of an entry in bytes, 0 to 1 PiB. The caller receives a larger body, but
    /// the cache does not store it. Default: 4 MiB.
    public var maxEntryBytes = 4 << 20
    /// The size limit in bytes of all unfinished bodies together, 0 to 1 PiB. The cache keeps a body in
    /// memory until its end, in order to store it. Beyond the limit, the caller still receives a body, but
    /// the cache does not store it. Default: 32 MiB.
    public var maxPendingBytes = 32 << 20
    /// The maximum time for which a stored response may have been stale when it answers because the client
    /// cannot reach the origin, 0 s to 36,500 days. A directive may forbid this use of stale responses (RFC
    /// 9111, section 4.2.4). With zero the cache never serves a stale response for this reason. Default: one
    /// day.
    public var staleWhenUnreachable = Duration.seconds(86_400)
    /// The paths of seed packs: directories with resources that ship with the service, each with an
    /// `index.json` (docs/schemas/seed-pack.schema.json). The cache only reads them and does not count them
    /// toward its size limits. A newer stored response takes precedence over them. With `trustedKeys`, one of
    /// these keys must have signed each index.
    public var seedPacks: [String] = []
    /// The names of the request fields that identify the user of a request. Requests that differ in one of
    /// these fields use separate parts of the cache, as with partitions: no user receives the response to
    /// another user, even if the response may be stored. Fields whose names suggest a secret
    /// (`X-Client-Secret`, `DD-API-KEY`) count as credential fields without being listed. A redirect to
    /// another origin drops all credential fields.
    ///
    /// Add the fields of your services to `usualCredentialFields`. Case does not matter.
    public var credentialFields = usualCredentialFields
    /// The names of request fields that contain no secret, although their names suggest one. Requests that
    /// differ only in these fields share stored responses, and a redirect keeps the fields. Case does not
    /// matter. Default: `Idempotency-Key`, `X-Idempotency-Key` and `Sec-WebSocket-Key`.
    public var harmlessFields = CredentialFields.harmless
    /// The entries that the memory cache has at the start.
    package var entries: [CacheEntry] = []
    /// Returns freed memory to the system when the memory cache asks for it. With `nil` the cache never asks.
    package var heap: (any ProcessHeap)?
    /// The clock of the cache, in milliseconds since 1970.
    package var now: @Sendable () -> Int64 = { WallClock.now() }

    /// The default of `credentialFields`: `Authorization`, `Cookie`, and fields in which gateways pass on the
    /// user of a request, such as `X-Forwarded-User`. docs/caching.md lists all of them.
    public static let usualCredentialFields = CredentialFields.usual

    /// The fields that carry credentials: those that `credentialFields` names, and those whose names suggest
    /// a secret and are not in `harmlessFields`.
    ///
    /// - Parameter orUsual: whether the fields of `usualCredentialFields` count even if `credentialFields`
    ///   does not contain them. A redirect to another origin drops these fields in any case.
    func credentials(orUsual: Bool = false) -> CredentialFields {
      if credentialFields == CredentialFields.usual, harmlessFields == CredentialFields.harmless {
        return .standard
      }
      return CredentialFields(
        orUsual ? credentialFields.union(CredentialFields.usual) : credentialFields, harmless: harmlessFields)
    }

    /// Makes a configuration with the defaults.
    public init() {}
  }

  /// The proxy for requests.
  public enum Proxy: Hashable, Sendable {
    /// The proxy that `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` name when the client is made.
    case environment
    /// No proxy, whatever the environment says.
    case none
    /// The proxy at this URL: `http://host:port`, `https://…`, `socks5h://…`.
    case url(String)
  }

  /// Makes a configuration with the defaults.
  public init() {}
}

extension ClientConfiguration.Proxy: CustomStringConvertible, CustomReflectable {
  /// The proxy in words. For a URL: its scheme, host and port, without the user name and password.
  public var description: String {
    switch self {
    case .environment: "environment"
    case .none: "none"
    case .url(let url): "url(\(ProxyURL.shown(url)))"
    }
  }

  /// A mirror without children, so that a dump does not show the password.
  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .enum) }
}
