internal import Spool
internal import Transfer

extension Response.Refusal {
  /// The HTTP status; for FTP and SFTP the one with the same meaning (spool(5), `http-NNN`).
  var status: Int {
    switch self {
    case .http(let status, _): status
    case .login: 401
    case .access: 403
    case .noSuchFile: 404
    case .unavailable: 503
    }
  }
}

extension Failure {
  /// The job's failure for a refusal.
  /// - Parameters:
  ///   - url: the job's URL.
  ///   - mayPass: whether a later attempt may get the file.
  init(_ refusal: Response.Refusal, from url: URLParts, mayPass: Bool) {
    func failure(_ reason: String) -> Failure {
      Failure(.http, "\(url.host) \(reason)", status: refusal.status, mayPass: mayPass)
    }
    switch refusal {
    case .http(401, let logins): self = failure("answered 401: \(Self.loginAdvice(url, logins))")
    case .http(let status, _):
      let reason = "answered \(status)\(Self.advice(status))"
      self = status < 400 ? Failure(.badResponse, "\(url.host) \(reason)") : failure(reason)
    case .login: self = failure("refused the login: write \(url.scheme)://USER:PASSWORD@HOST/… in the job")
    case .access: self = failure("denied access")
    case .noSuchFile: self = failure("has no such file")
    case .unavailable: self = failure("could not send the file")
    }
  }

  /// - Parameter schemes: those by which the server takes a login.
  private static func loginAdvice(_ url: URLParts, _ schemes: [String]) -> String {
    let names = schemes.isEmpty ? "" : " by \(schemes.joined(separator: ", "))"
    let isOurs = schemes.isEmpty || schemes.contains { ["basic", "digest"].contains($0.lowercasedASCII) }
    if isOurs, url.hasLogin { return "it refuses the login\(names)" }
    let own = isOurs ? "\(url.scheme)://USER:PASSWORD@HOST/…, or " : ""
    return "it requires a login\(names): write \(own)header: Authorization: … in the job"
  }

  private static func advice(_ status: Int) -> String {
    switch status {
    case 202: ": the file is not ready yet"
    case 300...399: ", a redirect without a usable Location"
    case 407: ": it requires credentials"
    case 403: ": forbidden"
    case 404, 410: ": no such file"
    default: ""
    }
  }
}
