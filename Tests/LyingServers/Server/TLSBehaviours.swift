import TestSupport

/// Bodies that end with the connection, and too early. Over TLS without close_notify a client can tell (RFC 9112
/// section 9.8); in all other cases nobody can, so these are served over that alone.
let tlsBehaviours: [Behaviour] = [0, 1, 4000, n - 1].flatMap { count in
  ["HTTP/1.0", "HTTP/1.1"].map { version in
    Behaviour("until close, \(version), cut after \(count)", facts: .nothing, outcomes: .all(.waits("cut"))) {
      _, reply in
      try reply.head("200 OK", ["Connection: close"], version: version)
      try reply.send(payload.prefix(count))
      try reply.finish()
    }
  }
}
