extension FetchRequest {
  /// The URL of the request, once all that it asks for has been found to be sendable.
  /// - Throws: a failure that quotes no value.
  func checked(allowing protocols: Set<Scheme>) throws(TransferFailure) -> URLParts {
    let parts = if let parts { parts } else { try Self.parts(of: url, "", isPathSecret: isPathSecret) }
    guard protocols.contains(parts.scheme) else {
      throw TransferFailure(code: .protocolNotEnabled, message: "protocol \(parts.scheme) is not enabled")
    }
    if let problem = headers.lazy.compactMap(RequestFields.problem(in:)).first {
      throw TransferFailure(code: .badURL, message: problem)
    }
    for (name, value) in [("validator", ifRange), ("user agent", userAgent)] {
      guard RequestFields.isFieldValue(value ?? "") else {
        throw TransferFailure(code: .badURL, message: "\(name) has a control character")
      }
    }
    if let referer { _ = try Self.parts(of: referer, "referer: ") }
    return parts
  }

  private static func parts(
    of text: String, _ prefix: String, isPathSecret: Bool = false
  ) throws(TransferFailure) -> URLParts {
    do throws(URLProblem) { return try URLParts(text, isPathSecret: isPathSecret) } catch {
      throw TransferFailure(code: .badURL, message: prefix + error.reason)
    }
  }
}
