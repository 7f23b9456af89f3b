// What the browser keeps for the page. Never throws: where storage is forbidden, it forgets.

function guarded(storage) {
  return {
    get(key) {
      try { return JSON.parse(storage().getItem(key)); } catch { return null; }
    },
    set(key, value) {
      try {
        if (value === null || value === undefined || value === "") storage().removeItem(key);
        else storage().setItem(key, JSON.stringify(value));
      } catch { /* full or forbidden: the page works without */ }
    },
  };
}

/** Until it is deleted, for all tabs. */
export const kept = guarded(() => localStorage);
/** Until the tab is closed. */
export const tab = guarded(() => sessionStorage);
