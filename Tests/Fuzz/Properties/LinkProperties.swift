internal import Spool
internal import Transfer

/// What a program prints that may have it from a server.
func checkLinks(_ bytes: [UInt8]) throws(Violation) {
  for isForURL in [false, true] {
    let links: JobRequest
    do throws(Defect) {
      links = try JobRequest(links: bytes, isForURL: isForURL)
    } catch {
      let lines = bytes.count { $0 == 0x0A } + 1
      try require(!hasControls(error.description), "a defect that steers a terminal")
      try require(error.line.map { (1...lines).contains($0) } ?? true, "a defect in line \(error.line ?? 0)")
      continue
    }
    try require(isForURL || !links.urls.isEmpty, "links without a URL")
    try require(links.urls.allSatisfy { !$0.text.isEmpty }, "an empty URL")
    for header in links.headers {
      try require(FetchRequest.problem(ofHeader: header.text) == nil, "a header that the engine refuses")
      try require(!links.urls.isEmpty || header.host != nil, "a header for whatever host a dropper names")
    }
    var job = JobRequest()
    job.headers = links.headers
    if let resolved = try? job.resolved(by: links) {
      try require(resolved.headers == links.headers, "headers that replace others come twice")
      try require(resolved.expected == links.expected && resolved.urls == links.urls, "something else than was printed")
    } else {
      throw Violation(description: "a job that declares nothing contradicts the links")
    }
  }
}
