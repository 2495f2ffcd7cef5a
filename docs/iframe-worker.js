// Lets the search of the manual work without a server. A page of file:// may start no worker, so the script of
// the worker runs in a frame of the page. The search script asks for IFrameWorker by name.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = (this.inner = frame.contentWindow);
      const script = inner.document.createElement("script");
      // In a worker, postMessage goes to the page.
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        for (const data of this.waiting) this.deliver(data);
        this.waiting = null;
      };
      script.onerror = () => this.dispatchEvent(new Event("error"));
      inner.document.body.appendChild(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.deliver(data);
    }

    deliver(data) {
      setTimeout(() => this.inner.dispatchEvent(new MessageEvent("message", { data })), 0);
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
