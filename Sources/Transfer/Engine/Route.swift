/// The URLs of a fetch: the job's own, and those that redirects lead to (RFC 9110, 15.4). Pure: times come from
/// outside.
struct Route {
  /// The body of a redirect is read only to keep the connection. More bytes, or more time, cost more than a new one.
  private static let bodyLimit = 64 * 1024
  private static let bodyWait: Milliseconds = 500

  /// The job's URL: what its credentials are for.
  let origin: URLParts
  private(set) var url: URLParts
  private(set) var withCredentials = true
  private let isOffered: Bool
  private let limit: Int
  private let schemes: Set<Scheme>
  private var followed = 0
  /// A response on the way set cookies that no request sends back.
  private var hasLostCookies = false
  /// The redirect that this hop's answer asks for: where to, or nil for the same URL, since when that is known, and the
  /// bytes of its body.
  private var redirect: (location: String?, since: Milliseconds, body: Int)?
  private var shownManner: LoginManner?

  /// - Parameter isOffered: whether a stranger has chosen `url`, as the target of a redirect.
  init(_ url: URLParts, limit: Int, schemes: Set<Scheme>, isOffered: Bool = false) {
    (origin, self.url) = (url, url)
    (self.isOffered, self.limit) = (isOffered, limit)
    self.schemes = schemes.filter(\.isHTTP)
  }

  var isRedirected: Bool { redirect != nil }

  /// The answer is a redirect; its body may follow.
  mutating func redirect(to location: String, losingCookies: Bool, at now: Milliseconds) {
    redirect = (location, now, 0)
    if losingCookies { hasLostCookies = true }
  }

  /// The same URL is to be asked again, with the login in another manner. Counts as a redirect.
  mutating func ask(again manner: LoginManner, at now: Milliseconds) {
    (redirect, shownManner) = ((nil, now, 0), manner)
  }

  var login: LoginManner { shownManner ?? LoginManner(for: url.scheme) }

  /// - Returns: false if the body of the redirect is too long to be read.
  mutating func takeBody(_ count: Int) -> Bool {
    redirect?.body += count
    return redirect.map { $0.body <= Self.bodyLimit } ?? true
  }

  func isBodyOverdue(at now: Milliseconds) -> Bool { redirect.map { now - $0.since >= Self.bodyWait } ?? false }

  mutating func follow() throws(TransferFailure) {
    guard let redirect else { return }
    guard followed < limit else {
      let advice = hasLostCookies ? "; it sets cookies, so try `cookies: yes` in `defaults`" : ""
      throw refusal("more than \(limit) redirects, the last one", advice)
    }
    followed += 1
    guard let location = redirect.location else {
      self.redirect = nil
      return
    }
    let target: URLParts
    do {
      target = try url.resolving(location)
    } catch {
      throw refusal("redirect to a forbidden URL (\(error.reason))")
    }
    // It goes into logs and records.
    guard target.requestText.utf8.count <= 16 << 10 else { throw refusal("redirect to a URL of more than 16 KiB") }
    guard schemes.contains(target.scheme) else {
      throw refusal("redirect to scheme \(target.scheme), which is not allowed,")
    }
    url = target
    // For good: what a foreign host redirects back to the origin goes without credentials, too.
    if !target.hasSameOrigin(as: origin) { withCredentials = false }
    (self.redirect, shownManner) = (nil, nil)
  }

  /// Whether the worker's own login for the host may be sent. Not in the clear where only a redirect or a list names
  /// the host: whoever is in between on any http could redirect to any host, and read the password.
  var mayUseOwnLogin: Bool { url.scheme.isEncrypted || !isOffered && url.hasSameOrigin(as: origin) }

  /// The value of Referer for this hop, as browsers send it by default (Referrer Policy,
  /// strict-origin-when-cross-origin): the page for the job's own origin, no more than its host for others, and nothing
  /// from https to http (RFC 9110, 10.1.3).
  func referer(_ page: URLParts) -> String? {
    if page.scheme.channel == .tls, url.scheme.channel == .plain { return nil }
    return withCredentials ? page.requestText : page.root
  }

  private func refusal(_ reason: String, _ advice: String = "") -> TransferFailure {
    TransferFailure(code: .redirect, message: "\(reason) from \(url.host)\(advice)")
  }
}
